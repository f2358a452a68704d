package grid

import (
	"slices"
	"strings"
	"time"
)

// Target names the place of a clone.
type Target struct{ Kind, Namespace, Name string }

// Place is how one clone stands to one rule.
type Place struct {
	Target

	Rule   string
	Source string
	State  State
	Reason string
	// Why is a sentence for a person.
	Why string
	// Revision is the one of the source that the clone has; 0 where none is known.
	// Consumers is how the clone's consumers do with it, in words.
	Revision  int
	Consumers string
	// Since is when it came to stand so. In what is put into a Grid it may be
	// zero: that it is not known.
	Since time.Time
	// Seen is true when Since is only when the grid first saw it so.
	Seen bool

	pass uint64
}

// cell is what a rule has in one namespace: one place, or several where a
// selector has several sources.
type cell []Place

// Grid is the state of every rule in every namespace, and what of it changed
// since that was last taken. It is plain data.
type Grid struct {
	rules []string
	row   map[string]int
	// names are the namespaces by slot: one that is new takes a free slot, so
	// that the others stay where they are. A free one has no name.
	names []string
	slot  map[string]int
	free  []int
	cells [][]cell
	// pass counts the passes over everything, so that what one did not meet is
	// known to be gone.
	pass    uint64
	changes changes
	// seen is what was seen before the first pass.
	seen FirstSeen
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

// Fill makes places all that there is.
func (g *Grid) Fill(places []Place, now time.Time) {
	g.pass++
	for _, place := range places {
		g.put(place, now)
	}
	for row := range g.cells {
		for slot := range g.cells[row] {
			g.keep(row, slot, func(p Place) bool { return p.pass == g.pass })
		}
	}
	g.vacate()
	g.seen = nil
}

// Set makes places all that there is of target.
func (g *Grid) Set(target Target, places []Place, now time.Time) {
	for _, place := range places {
		g.put(place, now)
	}
	slot, known := g.slot[target.Namespace]
	if !known {
		return
	}
	for row, rule := range g.rules {
		g.keep(row, slot, func(p Place) bool {
			return p.Target != target || slices.ContainsFunc(places, func(q Place) bool { return q.Rule == rule })
		})
	}
	if g.isVacant(slot) {
		g.release(slot)
	}
}

// put adds a place or takes its news. One of a rule that the grid does not
// know is left out.
func (g *Grid) put(place Place, now time.Time) {
	row, known := g.row[place.Rule]
	if !known {
		return
	}
	slot := g.slotOf(place.Namespace)
	at := &g.cells[row][slot]
	before := at.shown()
	place.pass = g.pass
	same := slices.IndexFunc(*at, func(p Place) bool { return p.Target == place.Target })
	if place.Since.IsZero() {
		var last *Place
		if same >= 0 {
			last = &(*at)[same]
		}
		place = g.firstSeen(place, last, now)
	}
	if same >= 0 {
		(*at)[same] = place
	} else {
		*at = append(*at, place)
	}
	g.changes.note(row, slot, before, at.shown())
}

func (g *Grid) keep(row, slot int, which func(Place) bool) {
	at := &g.cells[row][slot]
	before := at.shown()
	*at = slices.DeleteFunc(*at, func(p Place) bool { return !which(p) })
	g.changes.note(row, slot, before, at.shown())
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
			g.cells[row] = append(g.cells[row], nil)
		}
	}
	g.slot[namespace] = slot
	g.changes.named[slot] = namespace
	return slot
}

// vacate gives the slots back of namespaces that no rule has anything in.
func (g *Grid) vacate() {
	for slot, name := range g.names {
		if name != "" && g.isVacant(slot) {
			g.release(slot)
		}
	}
}

func (g *Grid) isVacant(slot int) bool {
	return !slices.ContainsFunc(g.cells, func(row []cell) bool { return len(row[slot]) > 0 })
}

func (g *Grid) release(slot int) {
	delete(g.slot, g.names[slot])
	g.names[slot] = ""
	g.free = append(g.free, slot)
	g.changes.named[slot] = ""
}

func (c cell) state() State {
	worst := Empty
	for _, place := range c {
		worst = max(worst, place.State)
	}
	return worst
}

// revision is that of the only place of a cell; 0 where there are several, each of
// which has a source of its own.
func (c cell) revision() int {
	if len(c) != 1 {
		return 0
	}
	return c[0].Revision
}

func (c cell) shown() shown { return shown{c.state(), c.revision()} }

// At returns what rule has in namespace, by name.
func (g *Grid) At(rule, namespace string) []Place {
	row, known := g.row[rule]
	slot, found := g.slot[namespace]
	if !known || !found {
		return nil
	}
	places := slices.Clone(g.cells[row][slot])
	slices.SortFunc(places, comparePlaces)
	return places
}

func comparePlaces(a, b Place) int {
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
