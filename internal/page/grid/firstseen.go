package grid

import (
	"time"
)

// maxFirstSeen bounds the number of remembered times.
const maxFirstSeen = 10_000

// FirstSeen holds when a target that is not in sync was first seen in its present
// status, if nothing else shows that time. It outlives a Grid, so that the time stays
// the same when a browser connects again.
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
