// Package plural writes numbers of things as people do.
package plural

import "fmt"

// Of returns n and noun, in the plural unless n is 1: "1 clone", "2 clones". It
// knows nouns alone that take an s.
func Of(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
