package consumerhealth

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/revisions"
)

// State is what one reader shows of the revision.
type State string

// The states.
const (
	// Ran: a ready pod of it started with the revision.
	Ran State = "Ran"
	// Refreshed: it only mounts it, its pods show it, and one is ready.
	Refreshed State = "Refreshed"
	// Idle: only a person or a schedule makes it run the revision.
	Idle State = "Idle"
	// Excused: it does not run the revision, or fails with it, for another cause: it failed
	// before, its node is lost, or somebody else broke its image.
	Excused State = "Excused"
	// Waiting: it is waited for.
	Waiting State = "Waiting"
	// Failing: a pod with the revision fails.
	Failing State = "Failing"
)

// Result is what Judge says of one reader.
type Result struct {
	Name  string
	State State
	// Reason and Pod say why it is Waiting or Failing.
	Reason, Pod string
	// Unclear is true if another cause may be why it is Waiting. Paced is true if that is
	// Headwater's own pace alone.
	Unclear, Paced bool
	// Fails is true if a pod fails that does not count against the revision, although
	// nothing says that it failed before.
	Fails bool
	// Again is when passing time may change the result; zero if it does not.
	Again time.Time
}

// HasEvidence reports whether the reader gave evidence.
func (r Result) HasEvidence() bool { return r.State == Ran || r.State == Refreshed }

// Input is what Judge needs besides the consumer.
type Input struct {
	// Recorded is when the revision was recorded, and Written when the data of the clone was
	// last written, by the API server's clock in whole seconds.
	Recorded, Written time.Time
	// Before is what the record says of the consumer; empty if it says nothing.
	Before revisions.Condition
	// AnyHealth is true if a consumer only has to run the revision.
	AnyHealth bool
	Now       time.Time
}

// excusesWith reports whether pods that fail count for nothing, beside those that gave evidence.
func (in Input) excusesWith(evidence State) bool {
	return in.AnyHealth || in.Before == revisions.Partly && evidence != ""
}

// excuse returns why the consumer may not be ready for another cause than the revision; empty if
// nothing says so.
func (in Input) excuse() string {
	switch in.Before {
	case revisions.Rolling, revisions.Partly:
		return reasonRolling
	case revisions.Hanging:
		return reasonHanging
	default:
		return ""
	}
}

// The reasons to wait that Headwater's restarts do not give.
const (
	reasonRolling = "Rolling"
	reasonHanging = "NotReadyBefore"
	reasonEdited  = "TemplateEdited"
	reasonUnknown = "Unknown"
	reasonRestart = "Restarting"
	reasonRefresh = "Refreshing"
)

// Judge decides what c, whose clone holds the revision, shows of it. past is what Judge
// returned for it before.
func Judge(c Consumer, past Past, in Input) (Result, Past) {
	past = past.observed(c, in.Now)
	pod, reason, again := past.firstFailing(c, in.Now)
	judged := !in.excusesWith(c.hasEvidence(in.AnyHealth)) && !c.runsToCompletion()
	if !judged {
		reason = ""
	}
	result := Result{Name: c.Name, Again: again}
	switch {
	case c.isNew(in.Written, reason): // so that nothing is known of it
		result.State = Idle
		if evidence := c.hasEvidence(in.AnyHealth); evidence != "" && reason == "" && !c.runsToCompletion() {
			result.State = evidence
		}
	case reason != "":
		result.failing(c, in, pod, reason)
	default:
		past.ran = result.running(c, past, in)
	}
	result.Fails = judged && result.isUnblamed(in) && (reason != "" || c.isInTrouble())
	return result, past
}

// isNew reports whether c was created after the stage opened. If it fails, one that replaces another
// is not.
func (c Consumer) isNew(written time.Time, reason string) bool {
	return c.CreatedAt.After(written) && (reason == "" || !c.Replaces)
}

// isUnblamed reports whether a pod that fails counts neither against the revision nor as one
// that failed before.
func (r *Result) isUnblamed(in Input) bool {
	return in.Before != revisions.Failing && (r.State == Idle || r.State == Waiting)
}

// running completes r for a consumer of which no pod is known to fail with the revision. It
// returns what the consumer showed once.
func (r *Result) running(c Consumer, past Past, in Input) (ran State) {
	evidence := c.hasEvidence(in.AnyHealth)
	switch {
	case c.IsIdle():
		r.State = Idle
	case in.Before != revisions.Failing && !in.excusesWith(evidence) && past.isRecovering(c):
		r.waiting(c, in)
	case evidence != "":
		r.State = evidence
		return evidence
	case past.ran != "":
		r.State = past.ran
	case in.Before == revisions.Failing, c.isOnLostNode():
		r.State = Excused
	default:
		r.waiting(c, in)
	}
	return past.ran
}

// failing completes r for a consumer of which pod fails.
func (r *Result) failing(c Consumer, in Input, pod, reason string) {
	edited := c.Workload != nil && c.Workload.EditedSince(in.Recorded)
	r.State, r.Reason, r.Pod = Failing, reason, pod
	switch {
	case in.Before == revisions.Failing, edited && !c.isBlamedFor(reason):
		r.State = Excused
	case in.Before == revisions.Rolling, in.Before == revisions.Partly, !c.isBlamedFor(reason):
		r.State, r.Unclear = Waiting, true
	}
}

// waiting completes r for a consumer that does not run the revision yet.
func (r *Result) waiting(c Consumer, in Input) {
	r.State, r.Paced, r.Unclear = Waiting, c.Paced, !c.Paced && !c.isTested()
	switch blocker, excuse := c.blocker(), in.excuse(); {
	case excuse != "":
		r.Reason, r.Unclear = excuse, true
	case c.Workload != nil && c.Workload.EditedSince(in.Written):
		r.Reason, r.Unclear = reasonEdited, true
	case c.Waits != "":
		r.Reason = c.Waits
	case blocker != "": // which may never have read the revision
		r.Reason, r.Pod, r.Unclear = revisions.ReasonStanding, blocker, true
	case (c.Restarts || len(c.Pods) == 0) && c.Settled && !c.isReplacing():
		r.Reason = reasonUnknown // nothing is left to do, and nothing shows what it runs
	case c.Restarts:
		r.Reason = reasonRestart
	default:
		r.Reason = reasonRefresh
	}
}

// isReplacing reports whether pods of c have yet to be replaced or to become ready.
func (c Consumer) isReplacing() bool {
	for _, pod := range c.Pods {
		if pod.Started {
			return true
		}
	}
	if c.Workload != nil && c.Workload.Rollout == nil { // it may have been scaled to zero
		return len(c.Pods) > 0
	}
	return c.Workload == nil || !c.Workload.Rollout.Complete()
}

// Add adds the readers of one namespace, whose clone holds the revision, to the evidence
// of its stage. If the stage restarts what only mounts it, a refresh proves nothing.
func Add(to revisions.StageEvidence, readers []Result, restarts bool) revisions.StageEvidence {
	var active, proven, unhealthy, failed int
	for _, r := range readers {
		switch r.State {
		case Ran:
			to.Ran++
			proven = 1
		case Refreshed:
			to.Refreshed++
			if !restarts {
				proven = 1
			}
		case Waiting:
			to.Waiting++
			unhealthy = 1
			switch {
			case r.Unclear:
				to.Unclear++
			case r.Paced:
				to.Paced++
			}
		case Failing:
			unhealthy, failed = 1, 1
		case Idle:
			continue
		case Excused:
		}
		active = 1
	}
	to.Namespaces += active
	to.Proven += proven
	to.Unhealthy += unhealthy
	to.Failed += failed
	return to
}
