package page

import "time"

// sightingsMost bounds the places of which is remembered since when they were
// seen to stand as they do.
const sightingsMost = 10_000

// Sightings are since when places were seen to stand as they do that are not in
// sync and where nothing else tells. They outlive a Grid, so that it does not
// begin to count anew when somebody looks again.
type Sightings map[sighting]time.Time

type sighting struct {
	Target

	rule  string
	state State
}

func (p Place) sighting() sighting { return sighting{p.Target, p.Rule, p.State} }

// Sightings are those of g.
func (g *Grid) Sightings() Sightings {
	seen := Sightings{}
	for _, row := range g.cells {
		for _, at := range row {
			for _, place := range at {
				if place.Seen && place.State > Current && len(seen) < sightingsMost {
					seen[place.sighting()] = place.Since
				}
			}
		}
	}
	return seen
}

// Recall has g, which is empty, know what was seen before it.
func (g *Grid) Recall(seen Sightings) { g.seen = seen }

// firstSeen is since when place was seen to stand so; before is how it stood
// when it was looked at last, if it was.
func (g *Grid) firstSeen(place Place, before *Place, now time.Time) Place {
	place.Since, place.Seen = now, true
	switch at, recalled := g.seen[place.sighting()]; {
	case before != nil && before.State == place.State:
		place.Since, place.Seen = before.Since, before.Seen
	case before == nil && recalled:
		place.Since = at
	}
	return place
}
