package grid

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/headwater-k8s/headwater/internal/text"
)

// groupsMost bounds the groups that a List names.
const groupsMost = 100

// Filter chooses places. A field that is left empty chooses all.
type Filter struct {
	Rule string
	// Text is part of the name of a namespace.
	Text string
	// States are the wanted ones; none means every state that needs attention.
	States []State
	// Key is that of one group of places.
	Key string
	// Most bounds how many places of each group are named.
	Most int
}

// stateGroup is the places that are in the same state for the same reason.
type stateGroup struct {
	// Key tells the group from the others.
	Key    string
	State  State
	Reason string
	// Why is the sentence about one of its places; that of the others differs in
	// names alone.
	Why string
	// Total counts its places, Rules the rules that these belong to.
	Total, Rules int
	// Since is the earliest of its places, and Seen as there.
	Since time.Time
	Seen  bool
	// Places are the first, by rule and namespace.
	Places []Place

	rules map[string]bool
}

// List is what a Filter chooses: the worst groups first, of these the largest.
type List struct {
	// Total counts places, Hidden the groups that are left out.
	Total, Hidden int
	Groups        []stateGroup
}

// wants reports whether the filter chooses places in this state.
func (f Filter) wants(state State) bool {
	if len(f.States) == 0 {
		return state >= Held
	}
	return slices.Contains(f.States, state)
}

// List returns the places that filter chooses.
func (g *Grid) List(filter Filter) List {
	groups := map[string]*stateGroup{}
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
					collect(groups, place, filter)
				}
			}
		}
	}
	return ranked(groups, filter.Most)
}

func collect(groups map[string]*stateGroup, place Place, filter Filter) {
	key := place.key()
	if filter.Key != "" && filter.Key != key {
		return
	}
	group := groups[key]
	if group == nil {
		group = &stateGroup{
			Key: key, State: place.State, Reason: place.Reason, Why: place.Why, Since: place.Since, Seen: place.Seen, rules: map[string]bool{},
		}
		groups[key] = group
	}
	group.Total++
	group.rules[place.Rule] = true
	if place.Since.Before(group.Since) {
		group.Since, group.Seen = place.Since, place.Seen
	}
	group.Places = append(group.Places, place)
	if len(group.Places) > 2*filter.Most+groupsMost {
		group.cut(filter.Most) // a group may have every namespace of the cluster
	}
}

func (g *stateGroup) cut(most int) {
	slices.SortFunc(g.Places, comparePlaces)
	g.Places = g.Places[:min(most, len(g.Places))]
}

func ranked(groups map[string]*stateGroup, most int) List {
	var list List
	for _, group := range groups {
		group.cut(most)
		group.Rules = len(group.rules)
		list.Total += group.Total
		list.Groups = append(list.Groups, *group)
	}
	slices.SortFunc(list.Groups, func(a, b stateGroup) int {
		return cmp.Or(cmp.Compare(b.State, a.State), cmp.Compare(b.Total, a.Total), cmp.Compare(a.Key, b.Key))
	})
	shown := min(groupsMost, len(list.Groups))
	list.Hidden = len(list.Groups) - shown
	list.Groups = list.Groups[:shown]
	return list
}

// key is that of the place's group: the sentence about it without the names
// that differ from clone to clone.
func (p Place) key() string {
	why := p.Why
	for _, name := range []string{p.Source, p.Namespace, p.Name, p.Rule} {
		why = text.WithoutWord(why, name)
	}
	return p.State.word().Name + " " + p.Reason + " " + why
}
