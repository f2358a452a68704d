package page

import (
	"slices"
	"strings"
)

// Filter chooses places. What is left empty chooses all.
type Filter struct {
	Rule string
	// Text is part of the name of a namespace.
	Text string
	// States are those that are wanted; none means every one that is not as it
	// should be.
	States []State
	// Most bounds how many are returned.
	Most int
}

// List is the worst places that a Filter chooses, and how many it chooses.
type List struct {
	Total  int
	Places []Place
}

// wants reports whether the filter chooses places that stand so.
func (f Filter) wants(state State) bool {
	if len(f.States) == 0 {
		return state > Current
	}
	return slices.Contains(f.States, state)
}

// List returns the places that filter chooses, the worst first and then by
// name.
func (g *Grid) List(filter Filter) List {
	// A place is only looked at when it may be among the first of its state.
	byState := make([][]Place, len(stateWords))
	counts := make([]int, len(stateWords))
	for row, rule := range g.rules {
		if filter.Rule != "" && filter.Rule != rule {
			continue
		}
		for slot, at := range g.cells[row] {
			if len(at) == 0 || !strings.Contains(g.names[slot], filter.Text) {
				continue
			}
			for _, place := range at {
				if filter.wants(place.State) {
					counts[place.State]++
					byState[place.State] = append(byState[place.State], place)
				}
			}
		}
	}
	var list List
	for state := len(stateWords) - 1; state >= 0; state-- {
		list.Total += counts[state]
		if room := filter.Most - len(list.Places); room > 0 {
			slices.SortFunc(byState[state], comparePlaces)
			list.Places = append(list.Places, byState[state][:min(room, len(byState[state]))]...)
		}
	}
	return list
}
