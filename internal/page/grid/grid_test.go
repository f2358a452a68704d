package grid

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(rule, namespace string, state State) Place {
	return Place{Target: Target{"Secret", namespace, rule + "-secret"}, Rule: rule, State: state}
}

func filled(places ...Place) *Grid {
	g := NewGrid([]string{"one", "two"})
	fill(g, places...)
	g.Take()
	return g
}

// fill makes places all that there is.
func fill(g *Grid, places ...Place) {
	in := map[string][]Place{}
	for _, place := range places {
		in[place.Namespace] = append(in[place.Namespace], place)
	}
	for _, namespace := range g.Namespaces() {
		g.Set(namespace, in[namespace])
	}
	for _, namespace := range slices.Sorted(maps.Keys(in)) {
		g.Set(namespace, in[namespace])
	}
}

func revised(place Place, revision int) Place {
	place.Revision = revision
	return place
}

func TestASnapshotHasTheRevisionsOfRulesThatHaveAny(t *testing.T) {
	g := filled(at("one", "a", Current), revised(at("two", "b", Current), 7))
	require.Equal(t, map[int][]int{1: {0, 7}}, g.Snapshot().Revisions)
}

func TestASnapshotIsEveryCell(t *testing.T) {
	g := filled(at("one", "a", Current), at("two", "a", Failed), at("two", "b", Behind), at("gone", "a", Current))
	require.Equal(t, Snapshot{Rules: []string{"one", "two"}, Namespaces: []string{"a", "b"}, Cells: []string{"ba", "ke"}}, g.Snapshot())
	require.Equal(t, Snapshot{Rules: []string{}, Namespaces: []string{}, Cells: []string{}}, NewGrid(nil).Snapshot(), "none of them is null")
}

func TestADeltaIsWhatChanged(t *testing.T) {
	one, two := at("one", "a", Current), at("two", "a", Current)
	for sentence, test := range map[string]struct {
		change func(*Grid)
		want   Delta
	}{
		"nothing":                           {func(*Grid) {}, Delta{}},
		"what was found as it was":          {func(g *Grid) { g.Set("a", []Place{one, two}) }, Delta{}},
		"a cell":                            {func(g *Grid) { g.Set("a", []Place{at("one", "a", Failed), two}) }, Delta{Cells: map[int][]int{0: {0, int(Failed)}}}},
		"a place that has nothing any more": {func(g *Grid) { g.Set("a", []Place{two}) }, Delta{Cells: map[int][]int{0: {0, int(Empty)}}}},
		"what came and went is no change": {func(g *Grid) {
			g.Set("a", []Place{at("one", "a", Failed), two})
			g.Set("a", []Place{one, two})
		}, Delta{}},
		"a place of a rule that there isn't":        {func(g *Grid) { g.Set("a", []Place{one, two, at("gone", "a", Failed)}) }, Delta{}},
		"a namespace with nothing but such a place": {func(g *Grid) { g.Set("c", []Place{at("gone", "c", Failed)}) }, Delta{}},
		"another revision":                          {func(g *Grid) { g.Set("a", []Place{revised(one, 7), two}) }, Delta{Revisions: map[int][]int{0: {0, 7}}}},
		"a second clone in a cell, whose revision another source counts": {func(g *Grid) {
			g.Set("a", []Place{revised(one, 7), two})
			g.Take()
			other := revised(one, 3)
			other.Name = "other"
			g.Set("a", []Place{revised(one, 7), two, other})
		}, Delta{Revisions: map[int][]int{0: {0, 0}}}},
		"a namespace that came": {
			func(g *Grid) { g.Set("c", []Place{at("one", "c", Behind)}) },
			Delta{Namespaces: map[int]string{2: "c"}, Cells: map[int][]int{0: {2, int(Behind)}}},
		},
		"a namespace that went": {
			func(g *Grid) { g.Set("b", nil) },
			Delta{Namespaces: map[int]string{1: ""}, Cells: map[int][]int{1: {1, int(Empty)}}},
		},
		"a namespace that takes the room of another": {
			func(g *Grid) {
				g.Set("b", nil)
				g.Set("c", []Place{at("two", "c", Current)})
			},
			Delta{Namespaces: map[int]string{1: "c"}},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			g := filled(one, two, at("two", "b", Current))
			test.change(g)
			delta := g.Take()
			require.Equal(t, test.want.Empty(), delta.Empty())
			if !delta.Empty() {
				require.Subset(t, delta.Namespaces, test.want.Namespaces)
				require.Len(t, delta.Namespaces, len(test.want.Namespaces))
				require.Subset(t, delta.Cells, test.want.Cells)
				require.Len(t, delta.Cells, len(test.want.Cells))
				require.Subset(t, delta.Revisions, test.want.Revisions)
				require.Len(t, delta.Revisions, len(test.want.Revisions))
			}
			require.True(t, g.Take().Empty(), "it is taken once")
		})
	}
}

// A page that had the snapshot before and every delta since has the snapshot of
// now.
func TestDeltasAddUpToTheSnapshot(t *testing.T) {
	g := filled(at("one", "a", Current), at("two", "b", Current))
	page := g.Snapshot()
	for _, places := range [][]Place{
		{at("one", "a", Current), at("two", "b", Current), at("one", "c", Behind)},
		{at("one", "a", Failed), at("two", "b", Current), at("one", "c", Behind), at("two", "d", Held)},
		{at("one", "a", Failed), at("two", "a", Removing), at("one", "c", Current), at("two", "d", Held)},
		{at("two", "e", Current), at("one", "c", Drifting)},
	} {
		fill(g, places...)
		page = apply(page, g.Take())
	}
	require.Equal(t, g.Snapshot(), page)
}

// apply does what the page does.
func apply(s Snapshot, d Delta) Snapshot {
	for slot, name := range d.Namespaces {
		for len(s.Namespaces) <= slot {
			s.Namespaces = append(s.Namespaces, "")
			for row := range s.Cells {
				s.Cells[row] += "a"
			}
		}
		s.Namespaces[slot] = name
	}
	for row, pairs := range d.Cells {
		letters := []byte(s.Cells[row])
		for i := 0; i < len(pairs); i += 2 {
			letters[pairs[i]] = State(pairs[i+1]).code()
		}
		s.Cells[row] = string(letters)
	}
	return s
}

func TestACellStandsAsItsWorstPlace(t *testing.T) {
	other := at("one", "a", Failed)
	other.Name = "other"
	g := filled(at("one", "a", Current), other)
	require.Equal(t, []string{"k", "a"}, g.Snapshot().Cells)
	g.Set("a", []Place{at("one", "a", Current)})
	require.Equal(t, []string{"b", "a"}, g.Snapshot().Cells)
}

// listOf is ListOf these.
func listOf(places []Place, filter Filter) List {
	return ListOf(filter, func(report func(Place)) {
		for _, place := range places {
			report(place)
		}
	})
}

func TestAListIsTheWorstGroupsFirst(t *testing.T) {
	places := []Place{
		at("one", "a", Behind), at("one", "b", Failed), at("one", "c", Current), at("one", "d", Retained),
		at("two", "a", Failed), at("two", "c", Conflict),
	}
	for sentence, test := range map[string]struct {
		filter Filter
		want   []string
		total  int
	}{
		"all that needs attention":      {Filter{Most: 9}, []string{"failed: one b, two a", "conflict: two c"}, 3},
		"the first of each group":       {Filter{Most: 1}, []string{"failed: one b", "conflict: two c"}, 3},
		"of a rule":                     {Filter{Rule: "two", Most: 9}, []string{"failed: two a", "conflict: two c"}, 2},
		"of namespaces":                 {Filter{Text: "a", Most: 9}, []string{"failed: two a"}, 1},
		"of states":                     {Filter{States: []State{Behind, Retained}, Most: 9}, []string{"waiting: one a", "retained: one d"}, 2},
		"what is in sync":               {Filter{States: []State{Current}, Most: 9}, []string{"in sync: one c"}, 1},
		"of one group":                  {Filter{Key: at("two", "c", Conflict).key(), Most: 9}, []string{"conflict: two c"}, 1},
		"of a rule that does not exist": {Filter{Rule: "three", Most: 9}, nil, 0},
		"of a namespace without clones": {Filter{Text: "zzz", Most: 9}, nil, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			list := listOf(places, test.filter)
			var found []string
			for _, group := range list.Groups {
				var places []string
				for _, place := range group.Places {
					places = append(places, place.Rule+" "+place.Namespace)
				}
				found = append(found, group.State.word().Text+": "+strings.Join(places, ", "))
			}
			require.Equal(t, test.want, found)
			require.Equal(t, test.total, list.Total)
		})
	}
}

func TestPlacesWithTheSameProblemAreOneGroup(t *testing.T) {
	var places []Place
	for i := range 300 {
		place := at("one", fmt.Sprintf("team-%03d", i), Failed)
		place.Why = fmt.Sprintf("create Secret %s/one-secret: quota exceeded in %[1]s", place.Namespace)
		place.Since = noon.Add(-time.Duration(i) * time.Minute)
		places = append(places, place)
	}
	other := at("two", "team-001", Failed)
	other.Why = "create Secret team-0012/one-secret: quota exceeded in team-001"
	places = append(places, other)
	list := listOf(places, Filter{Most: 3})
	require.Equal(t, 301, list.Total)
	require.Len(t, list.Groups, 2)
	group := list.Groups[0]
	require.Equal(t, 300, group.Total)
	require.Equal(t, 1, group.Rules)
	require.Equal(t, noon.Add(-299*time.Minute), group.Since, "the earliest")
	require.Len(t, group.Places, 3)
	require.Equal(t, "team-000", group.Places[0].Namespace)
	require.Equal(t, "team-001", list.Groups[1].Places[0].Namespace, "its message names a namespace that is not its own")
	require.Len(t, listOf(places, Filter{Key: group.Key, Most: 200}).Groups[0].Places, 200)
}

func TestAListNamesNoMoreGroupsThanAPageCanShow(t *testing.T) {
	var places []Place
	for i := range groupsMost + 7 {
		place := at("one", fmt.Sprintf("team-%d", i), Failed)
		place.Why = fmt.Sprintf("cause number %d", i)
		places = append(places, place)
	}
	list := listOf(places, Filter{Most: 3})
	require.Len(t, list.Groups, groupsMost)
	require.Equal(t, 7, list.Hidden)
	require.Equal(t, groupsMost+7, list.Total)
}
