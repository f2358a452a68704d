package grid

// Snapshot is a whole Grid as it is sent to a page.
type Snapshot struct {
	Rules []string `json:"rules"`
	// Namespaces are by slot; a free one has no name.
	Namespaces []string `json:"namespaces"`
	// Cells has a string for each rule, with a letter for each slot.
	Cells []string `json:"cells"`
}

// Delta is what changed in a Grid.
type Delta struct {
	// Namespaces are the slots that were taken by another name, or by none.
	Namespaces map[int]string `json:"namespaces,omitempty"`
	// Cells are slots and numbers of states in turn, by the number of the rule.
	Cells map[int][]int `json:"cells,omitempty"`
}

// Empty reports whether nothing changed.
func (d Delta) Empty() bool { return len(d.Namespaces) == 0 && len(d.Cells) == 0 }

// changes are kept by what was there before, so that what came and went
// between two Takes is none.
type changes struct {
	named map[int]string
	was   []map[int]State
}

func newChanges(rules int) changes {
	c := changes{named: map[int]string{}, was: make([]map[int]State, rules)}
	for row := range c.was {
		c.was[row] = map[int]State{}
	}
	return c
}

func (c *changes) note(row, slot int, before, after State) {
	if before == after {
		return
	}
	if first, again := c.was[row][slot]; !again {
		c.was[row][slot] = before
	} else if first == after {
		delete(c.was[row], slot)
	}
}

// Snapshot is all of g.
func (g *Grid) Snapshot() Snapshot {
	s := Snapshot{Rules: append([]string{}, g.rules...), Namespaces: append([]string{}, g.names...), Cells: make([]string, len(g.rules))}
	for row := range g.cells {
		letters := make([]byte, len(g.names))
		for slot, at := range g.cells[row] {
			letters[slot] = at.state().code()
		}
		s.Cells[row] = string(letters)
	}
	return s
}

// Take returns what changed since it was last called.
func (g *Grid) Take() Delta {
	d := Delta{Namespaces: g.changes.named, Cells: map[int][]int{}}
	for row, was := range g.changes.was {
		for slot := range was {
			d.Cells[row] = append(d.Cells[row], slot, int(g.cells[row][slot].state()))
		}
	}
	g.changes = newChanges(len(g.rules))
	return d
}
