package sync

import (
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
)

// spreads follows each change of a source until the last clone has it.
type spreads map[spreadKey]*spread

type spreadKey struct {
	rule   string
	source object.Ref
}

// spread is one change on its way.
type spread struct {
	// revision is the source's resourceVersion.
	revision string
	began    time.Time
	waiting  map[object.Ref]bool
	written  int
	failing  map[object.Ref]bool
}

// arrival is what one look at a place means for a change.
type arrival struct {
	key spreadKey
	// written is true for a clone that was written for the change, took the
	// time since it.
	written bool
	took    time.Duration
	// whole is the spread when this was the last place it waited for.
	whole *spread
}

// begin starts to follow a change; one that is still on its way is given up.
func (s spreads) begin(key spreadKey, revision string, targets []object.Ref, now time.Time) {
	spread := &spread{revision: revision, began: now, waiting: make(map[object.Ref]bool, len(targets)), failing: map[object.Ref]bool{}}
	for _, target := range targets {
		spread.waiting[target] = true
	}
	s[key] = spread
}

// looked notes the outcome for one place, as it was claimed.
func (s spreads) looked(target object.Ref, claims []Claim, wrote, failed bool, now time.Time) []arrival {
	var arrivals []arrival
	for key, spread := range s {
		if !spread.waiting[target] && !spread.failing[target] {
			continue
		}
		at := slices.IndexFunc(claims, func(c Claim) bool { return c.Rule.Name == key.rule && c.Ref == key.source })
		if at >= 0 && (claims[at].Source == nil || claims[at].Source.ResourceVersion != spread.revision) {
			continue // decided by another revision
		}
		won := at == 0 // else another rule has the place, or nobody wants a clone there
		arrived := spread.arrived(target, won && wrote, won && failed, now)
		arrived.key = key
		arrivals = append(arrivals, arrived)
		if len(spread.waiting)+len(spread.failing) == 0 {
			delete(s, key)
		}
	}
	return arrivals
}

// began is when the change came that the place of f waits for; zero when it
// waits for none.
func (s spreads) began(f Finding) time.Time {
	spread := s[spreadKey{f.Rule, f.Source}]
	if spread == nil || !spread.waiting[f.Target] && !spread.failing[f.Target] {
		return time.Time{}
	}
	return spread.began
}

// arrived takes target from the places that s waits for.
func (s *spread) arrived(target object.Ref, wrote, failed bool, now time.Time) arrival {
	var a arrival
	wasWaiting := s.waiting[target]
	delete(s.waiting, target)
	delete(s.failing, target)
	switch {
	case failed:
		s.failing[target] = true
	case wrote:
		s.written++
		a.written, a.took = true, now.Sub(s.began)
	}
	if wasWaiting && len(s.waiting) == 0 {
		a.whole = s
	}
	return a
}
