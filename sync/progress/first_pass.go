package progress

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
)

// FirstPass sums up what a leader finds and does until its queue is empty for
// the first time. The zero value takes nothing in.
type FirstPass struct {
	began time.Time
	// outcomes holds the last outcome of each place; nil before and after the
	// pass.
	outcomes map[object.Ref]outcome
}

type outcome struct{ exists, written, failed bool }

// passSummary is what a first pass came to.
type passSummary struct {
	// Clones exist in Namespaces; Written of them were created, updated or removed,
	// and Failed places are tried again.
	Clones, Namespaces, Written, Failed int
	Took                                time.Duration
}

func (p *FirstPass) Begin(now time.Time) {
	p.began, p.outcomes = now, map[object.Ref]outcome{}
}

// Note takes in what was done in one place. A write is seen once more, as an
// unchanged clone, when the cache has it.
func (p *FirstPass) Note(target object.Ref, step plan.Decision, exists bool, err error) {
	if p.outcomes == nil {
		return
	}
	wrote := err == nil && step.Writes()
	p.outcomes[target] = outcome{
		exists:  step.Action != plan.Remove && (exists || wrote) || step.Action == plan.Remove && err != nil,
		written: wrote || p.outcomes[target].written,
		failed:  err != nil,
	}
}

// End sums up and forgets the pass; ok is false when none is under way.
func (p *FirstPass) End(now time.Time) (sum passSummary, ok bool) {
	if p.outcomes == nil {
		return sum, false
	}
	namespaces := map[string]bool{}
	for target, outcome := range p.outcomes {
		if outcome.exists {
			sum.Clones++
			namespaces[target.Namespace] = true
		}
		if outcome.written {
			sum.Written++
		}
		if outcome.failed {
			sum.Failed++
		}
	}
	sum.Namespaces, sum.Took = len(namespaces), now.Sub(p.began)
	p.outcomes = nil
	return sum, true
}
