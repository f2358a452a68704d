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
	Key    string `json:"key"`
	State  State  `json:"state"`
	Reason string `json:"reason"`
	// Why is the sentence about one of its places; that of the others differs in
	// names alone.
	Why string `json:"why"`
	// Total counts its places, Rules the rules that these belong to.
	Total int `json:"total"`
	Rules int `json:"rules"`
	// Since is the earliest of its places, and Seen as there.
	Since time.Time `json:"since"`
	Seen  bool      `json:"seen"`
	// Places are the first, by rule and namespace.
	Places []Place `json:"places"`

	rules map[string]bool
}

// List is what a Filter chooses: the worst groups first, of these the largest.
type List struct {
	// Total counts places, Hidden the groups that are left out.
	Total  int          `json:"total"`
	Hidden int          `json:"hidden"`
	Groups []stateGroup `json:"groups"`
}

// Wants reports whether the filter chooses places of rule in this state.
func (f Filter) Wants(rule string, state State) bool {
	if f.Rule != "" && f.Rule != rule {
		return false
	}
	if len(f.States) == 0 {
		return state >= Held
	}
	return slices.Contains(f.States, state)
}

// ListOf returns the places that filter chooses of those that each reports.
func ListOf(filter Filter, each func(report func(Place))) List {
	groups := map[string]*stateGroup{}
	each(func(place Place) {
		if filter.Wants(place.Rule, place.State) && strings.Contains(place.Namespace, filter.Text) {
			collect(groups, place, filter)
		}
	})
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
	slices.SortFunc(g.Places, ComparePlaces)
	g.Places = g.Places[:min(most, len(g.Places))]
}

func ranked(groups map[string]*stateGroup, most int) List {
	list := List{Groups: []stateGroup{}}
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
