package delivery

import (
	"cmp"
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
	// Rollback rejects the revision under way, or goes back to Request.To until the
	// source is edited.
	Rollback Verb = "rollback"
)

// Request is what a person asks of the delivery of one source.
type Request struct {
	Verb Verb `json:"verb"`
	// Revision is what the request is about, such as the candidate's number as the
	// person saw it. A request about a revision that is no longer the candidate does
	// nothing, so a request that is done twice is done once.
	Revision int `json:"revision"`
	// To is the revision to go back to; 0 for every other request.
	To int `json:"to,omitempty"`
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

// What returns what the request asks for, such as "promote of revision 4".
func (r Request) What() string {
	if r.To != 0 {
		return fmt.Sprintf("%s to revision %d", r.Verb, r.To)
	}
	return fmt.Sprintf("%s of revision %d", r.Verb, r.Revision)
}

// Delivers returns the number of the revision whose content the request brings to
// clones that do not have it; 0 if there is none.
func (r Request) Delivers() int {
	if r.Verb == Retry {
		return r.Revision
	}
	return r.To
}

// Apply returns the revisions that the request changes, in the order to write them.
// The error says why it cannot be done. stages is nil for a rule without a delivery,
// and current for a source whose content is not recorded.
func (r Request) Apply(stages *spec.Stages, history History, current *Revision, now time.Time) ([]Revision, error) {
	revision := history.Numbered(cmp.Or(r.To, r.Revision))
	if revision == nil {
		return nil, fmt.Errorf("revision %d is not kept; `headwater history` lists those that are", cmp.Or(r.To, r.Revision))
	}
	if r.To != 0 {
		return r.pin(history, revision, current)
	}
	changed, done := *revision, false
	switch r.Verb {
	case Rollback:
		changed, done = revision.Settled(Rejected, "rolled back "+r.String()), revision.UnderWay()
	case Promote:
		changed.Approved, done = r.String(), revision.Verdict == Delivering
	case Pause:
		changed.Paused, done = r.String(), revision.Verdict == Delivering
	case Resume:
		done = changed.resume(now)
	case Retry:
		done = changed.retry(stages, revision == history.Newest(), now)
		if pinned := history.Pinned(); pinned != nil && changed.Verdict == Delivering {
			return []Revision{changed, pinned.Unpinned()}, nil // also if only the first was written before
		}
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
		*r = r.Unpinned()
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
// other one stays pinned, and a candidate is rejected. revision is the first of them,
// so that the clones go there directly.
func (r Request) pin(history History, revision, current *Revision) ([]Revision, error) {
	if revision.Verdict == Rejected {
		return nil, fmt.Errorf("revision %d was rejected; edit the source to deliver its content again", revision.Number)
	}
	target := *revision
	target.Pinned, target.PinnedOver = r.String(), 0
	if current != nil {
		target.PinnedOver = current.Number
	}
	changed := []Revision{target}
	for _, other := range history {
		switch {
		case other == revision:
		case other.UnderWay():
			changed = append(changed, other.Settled(Rejected, fmt.Sprintf("rolled back to revision %d %s", revision.Number, r)))
		case other.Pinned != "":
			changed = append(changed, other.Unpinned())
		}
	}
	return changed, nil
}

// Unpinned returns r after the end of a rollback to it.
func (r *Revision) Unpinned() Revision {
	next := *r
	next.Pinned, next.PinnedOver = "", 0
	return next
}
