package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a configuration file, or, as a note,
// hardly meant.
type Problem struct {
	File string `json:"-"`
	// Line counts from 1.
	Line int `json:"line"`
	// Path is the key, such as rules[0].sync.onConflict; empty for the file
	// as a whole.
	Path string `json:"path,omitempty"`
	// Message says what is wrong and what to do about it.
	Message string `json:"message"`
}

// String formats p as file:line: path: message.
func (p Problem) String() string {
	if p.Path == "" {
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message)
	}
	return fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.Path, p.Message)
}

// Problems is everything that is wrong with a configuration file, sorted by
// line.
type Problems []Problem //nolint:errname // it is a list, and reads as one

// Error gives each problem a line of its own.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

func (p Problems) sorted() Problems {
	slices.SortFunc(p, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Message, b.Message),
		)
	})
	return p
}
