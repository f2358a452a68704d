package ir

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	names "k8s.io/apimachinery/pkg/util/validation"
)

const (
	// maxGlobs is how many globs one regular expression may become.
	maxGlobs = 64
	// MaxRepeats is how often what repeats without end is repeated in globs,
	// where no * says the same.
	MaxRepeats = 4
	// fewChars of a class are globs of their own.
	fewChars = 3
)

// reading is a regular expression as globs over names of namespaces.
type reading struct {
	Globs []string
	// less is true when the globs match less: a repetition ends.
	Less bool
	// variable counts what can have more than one length.
	variable int
	choice   bool
}

var errNoGlob = errors.New("it is no glob")

// GlobsOf reads an expression that has to match a whole name. It never returns
// globs that match more, nor any that no namespace's name matches.
func GlobsOf(expression string) (reading, error) {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return reading{}, errNoGlob
	}
	parsed = unanchored(parsed)
	read, err := globReader{MaxRepeats}.globs(parsed)
	if err != nil {
		return read, err
	}
	read.Globs = slices.DeleteFunc(read.Globs, isNoName)
	if read.Less { // unless one more repetition adds no name, as in team-*
		more, err := globReader{MaxRepeats + 1}.globs(parsed)
		more.Globs = slices.DeleteFunc(more.Globs, isNoName)
		read.Less = err != nil || len(more.Globs) > len(read.Globs)
	}
	return read, nil
}

// isNoName reports whether no namespace can have a name that the glob matches:
// names are DNS labels.
func isNoName(glob string) bool {
	literal := strings.ReplaceAll(oneChar.ReplaceAllString(glob, "a"), "?", "a")
	possible := func(any string) bool {
		return len(names.IsDNS1123Label(strings.ReplaceAll(literal, "*", any))) == 0
	}
	return !possible("") && !possible("a")
}

// FirstMatchOf is GlobsOf for a tool that takes the first match there is and
// then asks whether it is the whole name: of several ways to match it sees one.
func FirstMatchOf(expression string) (reading, error) {
	read, err := GlobsOf(expression)
	if err != nil || !read.choice && read.variable <= 1 || endsAnchored(expression) {
		return read, err
	}
	if slices.ContainsFunc(read.Globs, isGlob) {
		return reading{}, errNoGlob
	}
	compiled, err := regexp.Compile(expression)
	if err != nil {
		return reading{}, errNoGlob
	}
	read.Globs = slices.DeleteFunc(read.Globs, func(name string) bool { return compiled.FindString(name) != name })
	return read, nil
}

func endsAnchored(expression string) bool {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	return err == nil && parsed.Op == syntax.OpConcat && isAnchor(parsed.Sub[len(parsed.Sub)-1])
}

func isAnchor(r *syntax.Regexp) bool {
	switch r.Op {
	case syntax.OpBeginText, syntax.OpEndText, syntax.OpBeginLine, syntax.OpEndLine:
		return true
	default:
		return false
	}
}

// unanchored is r without an anchor at each end.
func unanchored(r *syntax.Regexp) *syntax.Regexp {
	if r.Op != syntax.OpConcat {
		return r
	}
	sub := slices.Clone(r.Sub)
	if len(sub) > 0 && (sub[0].Op == syntax.OpBeginText || sub[0].Op == syntax.OpBeginLine) {
		sub = sub[1:]
	}
	if last := len(sub) - 1; last >= 0 && (sub[last].Op == syntax.OpEndText || sub[last].Op == syntax.OpEndLine) {
		sub = sub[:last]
	}
	return &syntax.Regexp{Op: syntax.OpConcat, Sub: sub, Flags: r.Flags}
}

// globReader repeats what repeats without end so often.
type globReader struct{ repeats int }

func (g globReader) globs(r *syntax.Regexp) (reading, error) {
	switch r.Op {
	case syntax.OpEmptyMatch:
		return reading{Globs: []string{""}}, nil
	case syntax.OpLiteral:
		if r.Flags&syntax.FoldCase != 0 {
			return reading{}, errNoGlob
		}
		return reading{Globs: []string{Escaped(string(r.Rune))}}, nil
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return reading{Globs: []string{"?"}}, nil
	case syntax.OpCharClass:
		return class(r.Rune)
	case syntax.OpCapture:
		return g.globs(r.Sub[0])
	case syntax.OpConcat:
		return g.joined(r.Sub)
	case syntax.OpAlternate:
		return g.chosen(r.Sub)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		return g.repeated(r)
	default:
		return reading{}, errNoGlob
	}
}

func (g globReader) joined(parts []*syntax.Regexp) (reading, error) {
	all := reading{Globs: []string{""}}
	for _, part := range parts {
		read, err := g.globs(part)
		if err != nil {
			return reading{}, err
		}
		var next []string
		for _, head := range all.Globs {
			for _, tail := range read.Globs {
				next = append(next, head+tail)
			}
		}
		all = reading{next, all.Less || read.Less, all.variable + read.variable, all.choice || read.choice}
		if len(all.Globs) > maxGlobs {
			return reading{}, errNoGlob
		}
	}
	return all, nil
}

func (g globReader) chosen(parts []*syntax.Regexp) (reading, error) {
	all := reading{choice: true}
	for _, part := range parts {
		read, err := g.globs(part)
		if err != nil {
			return reading{}, err
		}
		all = reading{append(all.Globs, read.Globs...), all.Less || read.Less, all.variable + read.variable, true}
	}
	if len(all.Globs) > maxGlobs {
		return reading{}, errNoGlob
	}
	return all, nil
}

// bounds are how often r repeats; most is negative without end.
func bounds(r *syntax.Regexp) (least, most int) {
	switch r.Op {
	case syntax.OpStar:
		return 0, -1
	case syntax.OpPlus:
		return 1, -1
	case syntax.OpQuest:
		return 0, 1
	default:
		return r.Min, r.Max
	}
}

func (g globReader) repeated(r *syntax.Regexp) (reading, error) {
	least, most := bounds(r)
	if r.Flags&syntax.NonGreedy != 0 {
		return reading{}, errNoGlob
	}
	if most < 0 && anyOfAName(r.Sub[0]) {
		return reading{Globs: []string{strings.Repeat("?", least) + "*"}, variable: 1}, nil
	}
	all := reading{Less: most < 0, variable: 1}
	if most < 0 {
		most = max(least, g.repeats)
	}
	for n := least; n <= most; n++ {
		read, err := g.joined(slices.Repeat([]*syntax.Regexp{r.Sub[0]}, n))
		if err != nil {
			return reading{}, err
		}
		all.Globs = append(all.Globs, read.Globs...)
		all.Less, all.variable, all.choice = all.Less || read.Less, all.variable+read.variable, all.choice || read.choice
		if len(all.Globs) > maxGlobs {
			return reading{}, errNoGlob
		}
	}
	return all, nil
}

// anyOfAName reports whether r matches every character that a namespace's name
// may have.
func anyOfAName(r *syntax.Regexp) bool {
	switch r.Op {
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return true
	case syntax.OpCapture:
		return anyOfAName(r.Sub[0])
	case syntax.OpCharClass:
		return !strings.ContainsFunc("abcdefghijklmnopqrstuvwxyz0123456789-", func(c rune) bool { return !inClass(r.Rune, c) })
	default:
		return false
	}
}

func inClass(ranges []rune, c rune) bool {
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i] <= c && c <= ranges[i+1] {
			return true
		}
	}
	return false
}

// class is one character of ranges, as far as names have them: each for itself
// where they are few.
func class(ranges []rune) (reading, error) {
	var inside strings.Builder
	var each []string
	for _, part := range [][2]rune{{'-', '-'}, {'0', '9'}, {'a', 'z'}} {
		for i := 0; i+1 < len(ranges); i += 2 {
			from, to := max(part[0], ranges[i]), min(part[1], ranges[i+1])
			for c := from; c <= to; c++ {
				each = append(each, string(c))
			}
			switch {
			case from > to:
			case from == '-':
				inside.WriteString(`\-`)
			case from == to:
				inside.WriteRune(from)
			default:
				fmt.Fprintf(&inside, "%c-%c", from, to)
			}
		}
	}
	switch {
	case len(each) == 0:
		return reading{}, errNoGlob // no name has such a character
	case len(each) <= fewChars:
		return reading{Globs: each}, nil
	default:
		return reading{Globs: []string{"[" + inside.String() + "]"}}, nil
	}
}

// kyvernoOwn is where Kyverno runs, which it leaves out as it does kube-*, unless
// it is configured otherwise.
const kyvernoOwn = "kyverno"

// OwnExcludes are what Kyverno leaves out of w by itself.
func (w Where) OwnExcludes() []string {
	var exclude []string
	if w.ReachesKube() {
		exclude = append(exclude, "kube-*")
	}
	if w.Wide() || slices.ContainsFunc(w.Names, func(glob string) bool { return globMatches(glob, kyvernoOwn) }) {
		exclude = append(exclude, kyvernoOwn)
	}
	return exclude
}
