// Package suggest finds the word that people meant when they misspelt it. It is
// pure.
package suggest

import "strings"

// maxWord is the length in bytes beyond which a word is not a misspelt one.
const maxWord = 100

// Closest returns the candidate that word most likely was meant to be, or ""
// if none is near enough. Case does not count.
func Closest(word string, candidates []string) string {
	if len(word) > maxWord {
		return ""
	}
	best, bestDistance := "", max(len(word)/3, 1)+1
	for _, candidate := range candidates {
		if d := distance(strings.ToLower(word), strings.ToLower(candidate)); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// distance counts the letters to add, remove, change or swap with their
// neighbour to get from a to b.
func distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	rows := make([][]int, len(from)+1)
	for i := range rows {
		rows[i] = make([]int, len(to)+1)
		rows[i][0] = i
	}
	for j := range to {
		rows[0][j+1] = j + 1
	}
	for i := range from {
		for j := range to {
			change := 1
			if from[i] == to[j] {
				change = 0
			}
			best := min(rows[i][j]+change, rows[i][j+1]+1, rows[i+1][j]+1)
			if i > 0 && j > 0 && from[i] == to[j-1] && from[i-1] == to[j] {
				best = min(best, rows[i-1][j-1]+1)
			}
			rows[i+1][j+1] = best
		}
	}
	return rows[len(from)][len(to)]
}
