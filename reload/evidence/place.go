package evidence

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/reload/consumerhealth"
	"github.com/headwater-k8s/headwater/reload/decide"
)

// place is a namespace with a clone.
type place struct {
	stage int
	// holds is true if the clone has the content of the revision, since written.
	holds   bool
	written time.Time
	// seen is when the clone's data was last written, by the API server's clock, and seenAt when
	// this process first saw that.
	seen, seenAt time.Time
	// before are the consumers that were failing or rolling when the stage opened.
	before map[string]revisions.Condition
	// readers are those of a clone that holds the revision. count and idle count all.
	readers     []consumerhealth.Result
	count, idle int
	past        map[string]consumerhealth.Past
	// sole says of each pod that uses an immutable clone whether kubelets cannot have
	// served it an older one. It is nil until the pods were read for the first time.
	sole map[types.UID]bool
	// controllers are those of pods that were there before the clone held the revision.
	controllers map[types.UID]bool
	// again is when passing time may change the readers; zero if it does not.
	again time.Time
}

// sees notes since when this process knows the data of the clone: its own clock may be ahead of
// the API server's, which dates the data.
func (p *place) sees(clone *object.Digested, now time.Time) {
	if p.seenAt.IsZero() || !clone.ChangedAt.Equal(p.seen) {
		p.seen, p.seenAt = clone.ChangedAt, now
	}
}

func (p *place) isSynced(now time.Time) bool { return now.Sub(p.seenAt) > decide.KubeletSync }

// observe notes which pods can have an older copy of an immutable clone, and takes back
// that they started with it.
func (p *place) observe(clone *object.Digested, found *Found) {
	if !clone.Immutable {
		return
	}
	sole := map[types.UID]bool{}
	for _, pod := range found.Users {
		was, known := p.sole[pod.UID]
		// What was there before the first look may have had older neighbours.
		sole[pod.UID] = known && was || !known && p.sole != nil && consumerhealth.IsSole(pod, found.Users)
	}
	p.sole = sole
	for i := range found.Consumers {
		pods := found.Consumers[i].Pods
		for j := range pods {
			pods[j].Started = pods[j].Started && sole[pods[j].UID]
		}
	}
}

// knows notes the controller of a consumer of a clone that does not hold the revision: further pods
// of it are no new consumers.
func (p *place) knows(c consumerhealth.Consumer) {
	if c.Controller != "" {
		p.controllers[c.Controller] = true
	}
}

// judge judges the consumers of the place. One that was failing or rolling before and is
// healthy leaves the record, as does one that is gone.
func (p *place) judge(consumers []consumerhealth.Consumer, recorded time.Time, anyHealth bool, now time.Time) {
	past, before := map[string]consumerhealth.Past{}, map[string]revisions.Condition{}
	for _, c := range consumers {
		c.Replaces = c.Controller != "" && p.controllers[c.Controller]
		condition := p.before[c.Name]
		healthy := consumerhealth.HasRecovered(c)
		if p.holds {
			in := consumerhealth.Input{Recorded: recorded, Written: p.written, Before: condition, AnyHealth: anyHealth, Now: now}
			result, next := consumerhealth.Judge(c, p.past[c.Name], in)
			past[c.Name], healthy = next, result.HasEvidence() && (condition != revisions.Partly || healthy)
			p.add(result)
		} else {
			p.knows(c)
			p.countIdle(c.IsIdle())
		}
		if condition != "" && !healthy {
			before[c.Name] = condition
		}
	}
	p.past, p.before = past, before
	if synced := p.seenAt.Add(decide.KubeletSync + 1); slices.ContainsFunc(p.readers, isWaiting) && synced.After(now) {
		p.judgeAgain(synced)
	}
}

func (p *place) add(result consumerhealth.Result) {
	p.readers = append(p.readers, result)
	p.countIdle(result.State == consumerhealth.Idle)
	if !result.Again.IsZero() {
		p.judgeAgain(result.Again)
	}
}

func (p *place) countIdle(isIdle bool) {
	if isIdle {
		p.idle++
	}
}

func (p *place) judgeAgain(at time.Time) {
	if p.again.IsZero() || at.Before(p.again) {
		p.again = at
	}
}

// isBroken reports whether a reader fails without counting against the revision, and none
// shows that it works there.
func (p *place) isBroken() bool {
	return slices.ContainsFunc(p.readers, func(r consumerhealth.Result) bool { return r.Fails }) &&
		!slices.ContainsFunc(p.readers, consumerhealth.Result.HasEvidence)
}

// bad returns the readers that fail or are waited for.
func (p *place) bad() (bad []consumerhealth.Result) {
	for _, r := range p.readers {
		if r.State == consumerhealth.Failing || r.State == consumerhealth.Waiting {
			bad = append(bad, r)
		}
	}
	return bad
}
