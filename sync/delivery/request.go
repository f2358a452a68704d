package delivery

import (
	"fmt"
	"time"

	"github.com/headwater-k8s/headwater/sync/spec"
)

// Verb is what a person asks of a delivery.
type Verb string

// The values of Verb.
const (
	// Promote lets the delivery go on after a stage that needs an approval.
	Promote Verb = "promote"
	// Pause keeps the delivery in its stage.
	Pause Verb = "pause"
	// Resume ends a pause, and the rollback to an older revision.
	Resume Verb = "resume"
	// Retry delivers a rejected revision again, or goes on with a held one.
	Retry Verb = "retry"
	// Rollback rejects the revision under way, or goes back to the revision with a
	// number until the source's next revision.
	Rollback Verb = "rollback"
)

// Request is what a person asks of the delivery of one source.
type Request struct {
	Verb Verb `json:"verb"`
	// Revision is what the request is about: the candidate's number as the person
	// saw it, or the revision to roll back to. A request about a revision that is no
	// longer the candidate does nothing.
	Revision int `json:"revision"`
	// By is the person's name, which is not verified.
	By string    `json:"by,omitempty"`
	At time.Time `json:"at"`
}

func (r Request) String() string {
	by := r.By
	if by == "" {
		by = "an unnamed user"
	}
	return fmt.Sprintf("by %s at %s", by, r.At.UTC().Format(time.RFC3339))
}

// Apply returns the revisions that the request changes. The error says why it
// cannot be done. stages is nil for a rule without a delivery.
func (r Request) Apply(stages *spec.Stages, history History, now time.Time) ([]Revision, error) {
	revision := history.Numbered(r.Revision)
	if revision == nil {
		return nil, fmt.Errorf("revision %d is not kept; `headwater history` lists those that are", r.Revision)
	}
	if r.Verb == Rollback && !revision.UnderWay() {
		return pin(history, revision, r), nil
	}
	changed, done := *revision, false
	switch r.Verb {
	case Rollback:
		changed, done = revision.Settled(Rejected, "rolled back "+r.String()), true
	case Promote:
		changed.Approved, done = r.String(), revision.Verdict == Delivering
	case Pause:
		changed.Paused, done = r.String(), revision.Verdict == Delivering
	case Resume:
		done = changed.resume(now)
	case Retry:
		done = changed.retry(stages, revision == history.Newest(), now)
	}
	if !done {
		return nil, fmt.Errorf("revision %d is %s, so there is nothing to %s", r.Revision, revision.Verdict, r.Verb)
	}
	return []Revision{changed}, nil
}

// resume ends a pause or a rollback to r.
func (r *Revision) resume(now time.Time) bool {
	switch {
	case r.Pinned != "":
		r.Pinned = ""
	case r.Paused != "":
		r.Paused = ""
		r.restart(now)
	default:
		return false
	}
	return true
}

// retry delivers r again from its stage if it is held, and from the first one if it
// was rejected.
func (r *Revision) retry(stages *spec.Stages, newest bool, now time.Time) bool {
	switch {
	case r.Verdict == Held:
	case r.Verdict == Rejected && newest && stages != nil:
		r.Stage = stages.Name(0)
	default:
		return false
	}
	r.Verdict = Delivering
	r.restart(now)
	return true
}

// restart lets the stage's time count from now.
func (r *Revision) restart(now time.Time) {
	r.StageSince, r.HealthySince, r.Reason = now, time.Time{}, ""
}

// pin returns the revisions that change when everything goes back to revision: no
// other one stays pinned, and a candidate is rejected.
func pin(history History, revision *Revision, request Request) []Revision {
	var changed []Revision
	for _, other := range history {
		next := *other
		switch {
		case other == revision:
			next.Pinned = request.String()
		case other.UnderWay():
			next.Verdict, next.Reason = Rejected, fmt.Sprintf("rolled back to revision %d %s", revision.Number, request)
		case other.Pinned != "":
			next.Pinned = ""
		default:
			continue
		}
		changed = append(changed, next)
	}
	return changed
}
