// Package figures holds what was measured of Headwater, and writes it into the
// documents. deploy/figures.json is the only place where a figure is kept: the
// benchmarks store their runs there, and every block of a document between a
// begin and an end mark is made from it.
package figures

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Name is the path of the file that keeps the figures, below the root of the
// repository.
const Name = "deploy/figures.json"

// File is every run that a document states figures of, by what it measured.
type File struct {
	Runs map[string]Run `json:"runs"`
}

// Run is what one run of a benchmark measured.
type Run struct {
	// Command repeats the run.
	Command string `json:"command"`
	// Date is the day, as 2026-11-23.
	Date string `json:"date"`
	// Commit is the version of Headwater, also of a benchmark of another controller.
	Commit string `json:"commit"`
	// Version is that of another controller that was measured.
	Version string `json:"version,omitempty"`
	Machine string `json:"machine"`
	Rows    []Row  `json:"rows"`
	// Text is what a run says beside its rows, in lines of Markdown.
	Text []string `json:"text,omitempty"`
}

// Row is one thing that was measured.
type Row struct {
	// Key names it, as in Go's benchmark format.
	Key string `json:"key"`
	// Unit is that of Value and Floor.
	Unit    string  `json:"unit"`
	Samples int     `json:"samples,omitempty"`
	Value   Values  `json:"value,omitzero"`
	Floor   *Values `json:"floor,omitempty"`
	// Ratio compares rounds with the floor of the same round; nil where samples
	// are no pairs.
	Ratio *Ratio `json:"ratio,omitempty"`
	// Outcome says in words what happened when there is no value.
	Outcome string `json:"outcome,omitempty"`
}

// Values are of the samples or rounds of a row. What was not taken is 0.
type Values struct {
	Median float64 `json:"median"`
	P99    float64 `json:"p99,omitempty"`
	Max    float64 `json:"max,omitempty"`
}

// Ratio is of rounds: each is the value of one round divided by its floor.
// Median is the middle one of these, and not the ratio of the two medians.
type Ratio struct {
	Median   float64 `json:"median"`
	Least    float64 `json:"least"`
	Greatest float64 `json:"greatest"`
}

// Read reads the file of a repository.
func Read(root string) (File, error) {
	var file File
	content, err := os.ReadFile(filepath.Join(root, Name))
	if err != nil {
		return file, fmt.Errorf("read the figures: %w", err)
	}
	if err := json.Unmarshal(content, &file); err != nil {
		return file, fmt.Errorf("read %s: %w", Name, err)
	}
	return file, nil
}

// Update replaces runs in the file of a repository, each as a whole, and writes
// the documents.
func Update(root string, runs map[string]Run) error {
	file, err := Read(root)
	if err != nil {
		return err
	}
	for name, run := range runs {
		file.Runs[name] = run
	}
	content, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	if err := os.WriteFile(filepath.Join(root, Name), append(content, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	return Write(root, file)
}

// ByKind makes a run of the rows of each kind, which is the first word of their
// keys; like has all the rest.
func ByKind(like Run, rows []Row) map[string]Run {
	runs := map[string]Run{}
	for _, row := range rows {
		kind, _, _ := strings.Cut(row.Key, "/")
		run, known := runs[kind]
		if !known {
			run = like
			run.Rows = nil
		}
		run.Rows = append(run.Rows, row)
		runs[kind] = run
	}
	return runs
}

// row returns the one of this key; where the run has another size, the last
// whose key begins alike up to its first number.
func (f File) row(kind, key string) (Run, Row, error) {
	run, known := f.Runs[kind]
	if !known {
		return run, Row{}, fmt.Errorf("%s has no run %s", Name, kind)
	}
	prefix, _, _ := strings.Cut(key, "=")
	var found Row
	for _, row := range run.Rows {
		if row.Key == key {
			return run, row, nil
		}
		if strings.HasPrefix(row.Key, prefix) && strings.Count(row.Key, "/") == strings.Count(key, "/") {
			found = row
		}
	}
	if found.Key == "" {
		return run, found, fmt.Errorf("run %s of %s has no row like %s", kind, Name, key)
	}
	return run, found, nil
}

// size is the number that stands after name= in the row's key.
func (r Row) size(name string) string {
	_, after, _ := strings.Cut(r.Key, name+"=")
	number, _, _ := strings.Cut(after, "/")
	return grouped(number)
}

// day is the run's date in words.
func (r Run) day() string {
	date, err := time.Parse(time.DateOnly, r.Date)
	if err != nil {
		return r.Date
	}
	return date.Format("2 January 2006")
}
