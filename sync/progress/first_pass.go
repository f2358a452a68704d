package progress

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
)

// firstPass summarizes the work of a new leader until its queue is empty for the
// first time.
type firstPass struct {
	began time.Time
	// outcomes holds the last outcome of each target; nil before and after the pass.
	outcomes map[object.Ref]passOutcome
}

type passOutcome struct{ exists, written, failed bool }

// PassSummary is the result of a first pass.
type PassSummary struct {
	// Clones is how many clones exist, in how many Namespaces. Written targets were
	// created, updated or removed; Failed targets are retried.
	Clones, Namespaces, Written, Failed int
	Took                                time.Duration
}

// BeginFirstPass starts the first pass. Before that, outcomes do not count for it.
func (t *Tracker) BeginFirstPass(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.firstPass = firstPass{now, map[object.Ref]passOutcome{}}
}

// EndFirstPass ends the pass and returns its summary; ok is false if none is in
// progress.
func (t *Tracker) EndFirstPass(now time.Time) (sum PassSummary, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.firstPass.end(now)
}

// note records the outcome for one target. A written target is reconciled once
// more, unchanged, when the cache shows the write.
func (p *firstPass) note(o Outcome) {
	if p.outcomes == nil {
		return
	}
	target, removes, wrote := o.State.Target, o.Decision.Action == plan.Remove, o.Err == nil && o.Decision.Writes()
	p.outcomes[target] = passOutcome{
		exists:  !removes && (o.State.Clone != nil || wrote) || removes && o.Err != nil,
		written: wrote || p.outcomes[target].written,
		failed:  o.Err != nil,
	}
}

func (p *firstPass) end(now time.Time) (sum PassSummary, ok bool) {
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
