package grid

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Target names the place of a clone.
type Target struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Place is how one clone stands to one rule.
type Place struct {
	Target

	Rule   string `json:"rule"`
	Source string `json:"source"`
	State  State  `json:"state"`
	Reason string `json:"reason"`
	// Why is a sentence for a person.
	Why string `json:"why"`
	// Since is when it came to stand so. Seen is true when that is only when it was first
	// seen so.
	Since time.Time `json:"since"`
	Seen  bool      `json:"seen"`
	// Revision is the one of the source that the clone has; 0 where none is known.
	Revision int `json:"revision,omitempty"`
}

// Grid is the state of every rule in every namespace, and what of it changed
// since that was last taken. It is plain data.
type Grid struct {
	rules []string
	row   map[string]int
	// names are the namespaces by slot: one that is new takes a free slot, so
	// that the others stay where they are. A free one has no name.
	names   []string
	slot    map[string]int
	free    []int
	cells   [][]cell
	changes changes
}

// cell is what a page shows of a rule in a namespace: how its worst place stands, and the
// revision of the only one; 0 where there are several, each of which has a source of its
// own.
type cell struct {
	state    State
	revision int
}

// NewGrid returns an empty Grid of these rules, in this order.
func NewGrid(rules []string) *Grid {
	g := &Grid{rules: rules, row: map[string]int{}, slot: map[string]int{}, cells: make([][]cell, len(rules))}
	for row, rule := range rules {
		g.row[rule] = row
	}
	g.changes = newChanges(len(rules))
	return g
}

// Rules are the rules, in their order.
func (g *Grid) Rules() []string { return g.rules }

// Namespaces are those with places.
func (g *Grid) Namespaces() []string { return slices.Collect(maps.Keys(g.slot)) }

// Set makes places all that there is in namespace. Those of a rule that the grid does not
// know are left out.
func (g *Grid) Set(namespace string, places []Place) {
	cells := make([]cell, len(g.rules))
	for _, place := range places {
		row, known := g.row[place.Rule]
		if !known {
			continue
		}
		at := &cells[row]
		if at.revision = place.Revision; at.state != Empty {
			at.revision = 0
		}
		at.state = max(at.state, place.State)
	}
	vacant := !slices.ContainsFunc(cells, func(c cell) bool { return c.state != Empty })
	if _, known := g.slot[namespace]; vacant && !known {
		return
	}
	slot := g.slotOf(namespace)
	for row, after := range cells {
		g.changes.note(row, slot, g.cells[row][slot], after)
		g.cells[row][slot] = after
	}
	if vacant {
		g.release(slot)
	}
}

func (g *Grid) slotOf(namespace string) int {
	if slot, known := g.slot[namespace]; known {
		return slot
	}
	var slot int
	if last := len(g.free) - 1; last >= 0 {
		slot, g.free = g.free[last], g.free[:last]
		g.names[slot] = namespace
	} else {
		slot = len(g.names)
		g.names = append(g.names, namespace)
		for row := range g.cells {
			g.cells[row] = append(g.cells[row], cell{})
		}
	}
	g.slot[namespace] = slot
	g.changes.named[slot] = namespace
	return slot
}

func (g *Grid) release(slot int) {
	delete(g.slot, g.names[slot])
	g.names[slot] = ""
	g.free = append(g.free, slot)
	g.changes.named[slot] = ""
}

// ComparePlaces orders places, the worst first.
func ComparePlaces(a, b Place) int {
	if a.State != b.State {
		return int(b.State) - int(a.State) // the worst first
	}
	if order := strings.Compare(a.Rule, b.Rule); order != 0 {
		return order
	}
	if order := strings.Compare(a.Namespace, b.Namespace); order != 0 {
		return order
	}
	return strings.Compare(a.Name, b.Name)
}

// State is how things stand in a cell of the grid: a rule in a namespace.
type State uint8

// The states, each worse than those before it. A cell that holds several
// clones stands as the worst of them.
const (
	Empty State = iota // the rule does not select the namespace
	Current
	Retained
	Removing
	Behind
	Drifting
	Fighting
	Held
	Refused
	Conflict
	Failed
)

// stateWord is what a person reads of a State, and what a script names it by.
type stateWord struct {
	// Code stands for it in the stream: its number as a letter, from a.
	Code string `json:"code"`
	Name string `json:"name"`
	// Text is what the page calls it, Means what that means.
	Text  string `json:"text"`
	Means string `json:"means"`
}

// StateWords are the words for each State, in the order of the states.
var StateWords = []stateWord{
	{"a", "empty", "not selected", "the rule does not select this namespace"},
	{"b", "current", "in sync", "the clone matches its source and its rule"},
	{"c", "retained", "retained", "kept on purpose, or until sync.removeAfter is over, after its rule, source or namespace stopped matching; Headwater no longer updates it"},
	{"d", "removing", "removing", "Headwater is about to delete it"},
	{"e", "behind", "waiting", "older than its source, or not created yet"},
	{"f", "drifting", "drifting", "somebody changed it; Headwater is repairing it"},
	{"g", "fighting", "fighting", "another client undoes each repair; Headwater repairs it with growing pauses"},
	{"h", "held", "held", "waits for an approval, or until its cause is gone"},
	{"i", "refused", "refused", "Headwater must not create this clone"},
	{"j", "conflict", "conflict", "an object that this rule did not create has the clone's name"},
	{"k", "failed", "failed", "the last write failed; Headwater tries again"},
}

// StateNamed returns the state of that name.
func StateNamed(name string) (state State, known bool) {
	for i, word := range StateWords {
		if word.Name == name {
			return State(i), true
		}
	}
	return Empty, false
}

func (s State) word() stateWord { return StateWords[s] }

// code is the letter that stands for s.
func (s State) code() byte { return 'a' + byte(s) }

// MarshalText gives the state's name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.word().Name), nil }
