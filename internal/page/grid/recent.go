package grid

import (
	"slices"
	"time"
)

const (
	// recentMost bounds what is remembered of each kind.
	recentMost = 20
	// together is how close two notes of one sort have to follow each other to
	// be told as one.
	together = 5 * time.Second
	// namesMost bounds what a note names of those that it is about.
	namesMost = 3
)

// Note is something that was done, in words; or many alike that followed each
// other. It names objects and people, and never has a value.
type Note struct {
	At time.Time `json:"at"`
	// What was done: the reason of an Event. Warning is true if it should not have been needed.
	What    string `json:"what"`
	Warning bool   `json:"warning,omitempty"`
	// Rule may be empty.
	Rule string `json:"rule"`
	// Names are the first of those that it was done to, Count is how many.
	Names []string `json:"names"`
	Count int      `json:"count"`
	// Why is a sentence for a person, about the first of many alike.
	Why string `json:"why"`
}

// Recent is the latest notes, the latest first, and no more than recentMost.
type Recent struct{ notes []Note }

// Add takes note in, which is about one.
func (r *Recent) Add(note Note) {
	note.Count = 1
	if len(r.notes) > 0 && r.notes[0].alike(note) {
		last := &r.notes[0]
		last.At, last.Count = note.At, last.Count+1
		if len(last.Names) < namesMost && !slices.Contains(last.Names, note.Names[0]) {
			last.Names = append(slices.Clip(last.Names), note.Names...)
		}
		return
	}
	r.notes = slices.Insert(r.notes, 0, note)
	r.notes = r.notes[:min(len(r.notes), recentMost)]
}

func (n Note) alike(other Note) bool {
	return n.What == other.What && n.Rule == other.Rule && other.At.Sub(n.At) < together
}

// Notes returns a copy.
func (r *Recent) Notes() []Note { return append([]Note{}, r.notes...) }
