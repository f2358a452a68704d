package grid

// Snapshot is a whole Grid as it is sent to a page.
type Snapshot struct {
	Rules []string `json:"rules"`
	// Namespaces are by slot; a free one has no name.
	Namespaces []string `json:"namespaces"`
	// Cells has a string for each rule, with a letter for each slot.
	Cells []string `json:"cells"`
	// Revisions are those of the cells by slot, by the number of the rule, for rules
	// that have any.
	Revisions map[int][]int `json:"revisions,omitempty"`
}

// Delta is what changed in a Grid.
type Delta struct {
	// Namespaces are the slots that were taken by another name, or by none.
	Namespaces map[int]string `json:"namespaces,omitempty"`
	// Cells are slots and numbers of states in turn, by the number of the rule.
	Cells map[int][]int `json:"cells,omitempty"`
	// Revisions are slots and revisions in turn, by the number of the rule.
	Revisions map[int][]int `json:"revisions,omitempty"`
}

// Empty reports whether nothing changed.
func (d Delta) Empty() bool {
	return len(d.Namespaces) == 0 && len(d.Cells) == 0 && len(d.Revisions) == 0
}

// changes are kept by what was there before, so that what came and went
// between two Takes is none.
type changes struct {
	named map[int]string
	was   []map[int]cell
}

func newChanges(rules int) changes {
	c := changes{named: map[int]string{}, was: make([]map[int]cell, rules)}
	for row := range c.was {
		c.was[row] = map[int]cell{}
	}
	return c
}

func (c *changes) note(row, slot int, before, after cell) {
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
			letters[slot] = at.state.code()
			if at.revision != 0 {
				s.revise(row, slot, at.revision)
			}
		}
		s.Cells[row] = string(letters)
	}
	return s
}

// revise sets the revision of a cell.
func (s *Snapshot) revise(row, slot, revision int) {
	if s.Revisions == nil {
		s.Revisions = map[int][]int{}
	}
	if s.Revisions[row] == nil {
		s.Revisions[row] = make([]int, len(s.Namespaces))
	}
	s.Revisions[row][slot] = revision
}

// Take returns what changed since it was last called.
func (g *Grid) Take() Delta {
	d := Delta{Namespaces: g.changes.named, Cells: map[int][]int{}, Revisions: map[int][]int{}}
	for row, was := range g.changes.was {
		for slot, before := range was {
			now := g.cells[row][slot]
			if now.state != before.state {
				d.Cells[row] = append(d.Cells[row], slot, int(now.state))
			}
			if now.revision != before.revision {
				d.Revisions[row] = append(d.Revisions[row], slot, now.revision)
			}
		}
	}
	g.changes = newChanges(len(g.rules))
	return d
}
