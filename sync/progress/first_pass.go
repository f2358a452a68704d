package progress

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
)

// FirstPass summarizes the work of a new leader until its queue is empty for the
// first time. Begin starts it; before that, it ignores outcomes.
type FirstPass struct {
	began time.Time
	// outcomes holds the last outcome of each target; nil before and after the pass.
	outcomes map[object.Ref]outcome
}

type outcome struct{ exists, written, failed bool }

// passSummary is the result of a first pass.
type passSummary struct {
	// Clones is how many clones exist, in how many Namespaces. Written targets were
	// created, updated or removed; Failed targets are retried.
	Clones, Namespaces, Written, Failed int
	Took                                time.Duration
}

// Begin starts the pass.
func (p *FirstPass) Begin(now time.Time) {
	p.began, p.outcomes = now, map[object.Ref]outcome{}
}

// Note records the outcome for one target. A written target is reconciled once
// more, unchanged, when the cache shows the write.
func (p *FirstPass) Note(target object.Ref, decision plan.Decision, exists bool, err error) {
	if p.outcomes == nil {
		return
	}
	wrote := err == nil && decision.Writes()
	p.outcomes[target] = outcome{
		exists:  decision.Action != plan.Remove && (exists || wrote) || decision.Action == plan.Remove && err != nil,
		written: wrote || p.outcomes[target].written,
		failed:  err != nil,
	}
}

// End ends the pass and returns its summary; ok is false if none is in progress.
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
