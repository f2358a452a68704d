package config

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/internal/text"
)

// document is a YAML file as data, with the line of every value, and the problems and
// notes so far.
type document struct {
	file  string
	root  any
	lines map[string]int
	// lineOf, when set, translates the lines of the text that is being parsed to
	// those of the file around it.
	lineOf func(int) int
	// written holds, by path, how the file writes what is no text.
	written  map[string]string
	problems Problems
	notes    Problems
	// faulty holds the paths whose values cannot be relied on. They are few, because
	// no more than maxProblems are reported.
	faulty map[string]bool
	// isCut is true once the rest of the file is not looked at.
	isCut bool
	// comparisons is how many more names and globs takeNotes may compare.
	comparisons int
}

const (
	// maxProblems is how many problems of a file are looked for, and how many notes.
	maxProblems = 100
	// maxPath and maxMessage limit, in bytes, what a problem repeats of the file.
	maxPath, maxMessage = 300, 600
)

func newDocument(file string) *document {
	return &document{file: file, lines: map[string]int{}, written: map[string]string{}, faulty: map[string]bool{}}
}

// fault reports that the value at path is not usable. Only the first report
// of a path counts: the others follow from it.
func (d *document) fault(path, message string) {
	if d.faulty[path] {
		return
	}
	d.faulty[path] = true
	d.report(d.line(path), path, message)
}

func (d *document) report(line int, path, message string) {
	if !d.isFull() {
		d.problems = append(d.problems, d.problem(line, path, message))
	}
}

// cut reports that the file holds too much, so that the rest is not read.
func (d *document) cut(line int, path, message string) {
	d.report(line, path, message)
	d.isCut = true
}

// isFull reports whether there are so many problems that looking for more only costs
// time.
func (d *document) isFull() bool { return d.isCut || len(d.problems) >= maxProblems }

// faults returns the problems, sorted by line, as an error.
func (d *document) faults() Problems {
	problems := d.problems.sorted()
	if len(problems) >= maxProblems {
		last := problems[len(problems)-1]
		problems = append(problems, d.problem(last.Line, "", "there may be more problems; fix these first"))
	}
	return problems
}

func (d *document) problem(line int, path, message string) Problem {
	return Problem{File: d.file, Line: line, Path: text.Truncate(path, maxPath), Message: text.Truncate(message, maxMessage)}
}

// note adds a note on a setting that is valid and probably not intended.
func (d *document) note(at *field.Path, message string) {
	if d.comparisons < 0 || len(d.notes) >= maxProblems {
		return
	}
	path := dotted(at)
	d.notes = append(d.notes, d.problem(d.line(path), path, message))
}

// doubtful reports whether something was found to be wrong at path, above it
// or below it, so that what it seems to mean says nothing.
func (d *document) doubtful(path string) bool {
	for faulty := range d.faulty {
		if within(path, faulty) || within(faulty, path) {
			return true
		}
	}
	return false
}

// within reports whether path is parent or below it.
func within(path, parent string) bool {
	rest, found := strings.CutPrefix(path, parent)
	return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// line returns the line of the value at path, or of what surrounds the place
// where it is missing.
func (d *document) line(path string) int {
	for path != "" {
		if line, ok := d.lines[path]; ok {
			return line
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return 1
}

// at returns the value that tokens lead to and the path by which people call
// it.
func (d *document) at(tokens []string) (value any, path *field.Path) {
	value = d.root
	for _, token := range tokens {
		switch container := value.(type) {
		case map[string]any:
			path = member(path, token)
			value = container[token]
		case []any:
			i := indexOf(token)
			path = path.Index(i)
			value = container[i]
		}
	}
	return value, path
}

// drop takes away the value that tokens lead to, so that the rest can still be
// decoded.
func (d *document) drop(tokens []string) {
	if len(tokens) == 0 {
		return
	}
	last := tokens[len(tokens)-1]
	parent, _ := d.at(tokens[:len(tokens)-1])
	switch container := parent.(type) {
	case map[string]any:
		delete(container, last)
	case []any:
		container[indexOf(last)] = nil
	}
}

// member is the path of one key of the mapping at parent: a field, or a key
// that the user chose.
func member(parent *field.Path, key string) *field.Path {
	if holdsFreeKeys(parent) {
		return parent.Key(key)
	}
	return parent.Child(key)
}

func holdsFreeKeys(path *field.Path) bool {
	full := dotted(path)
	switch full[strings.LastIndex(full, ".")+1:] {
	case "labels", "annotations", "matchLabels":
		return true
	default:
		return false
	}
}

// dotted returns the name of path in messages; empty for the whole file.
func dotted(path *field.Path) string {
	if path == nil {
		return ""
	}
	return path.String()
}
