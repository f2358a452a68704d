package grid

import (
	"time"
)

// maxFirstSeen bounds the places of which is remembered since when they were
// seen to stand as they do.
const maxFirstSeen = 10_000

// FirstSeen are since when places were seen to stand as they do that are not in
// sync and where nothing else tells. They outlive a Grid, so that it does not
// begin to count anew when somebody looks again.
type FirstSeen map[firstSeenKey]time.Time

type firstSeenKey struct {
	Target

	rule  string
	state State
}

func (p Place) firstSeenKey() firstSeenKey { return firstSeenKey{p.Target, p.Rule, p.State} }

// FirstSeen are those of g.
func (g *Grid) FirstSeen() FirstSeen {
	seen := FirstSeen{}
	for _, row := range g.cells {
		for _, at := range row {
			for _, place := range at {
				if place.Seen && place.State > Current && len(seen) < maxFirstSeen {
					seen[place.firstSeenKey()] = place.Since
				}
			}
		}
	}
	return seen
}

// Recall has g, which is empty, know what was seen before it.
func (g *Grid) Recall(seen FirstSeen) { g.seen = seen }

// firstSeen is since when place was seen to stand so; before is how it stood
// when it was looked at last, if it was.
func (g *Grid) firstSeen(place Place, before *Place, now time.Time) Place {
	place.Since, place.Seen = now, true
	switch at, recalled := g.seen[place.firstSeenKey()]; {
	case before != nil && before.State == place.State:
		place.Since, place.Seen = before.Since, before.Seen
	case before == nil && recalled:
		place.Since = at
	}
	return place
}
