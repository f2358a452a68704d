package delivery

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/stages"
)

// Verb is what a person asks of a delivery.
type Verb string

// The values of Verb.
const (
	// Promote lets the delivery go on after a stage that needs an approval. It waives no
	// evidence, except as Request.Unproven and Request.All say.
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

// requestLasts is how long a request is valid: one that a restored backup brings back is not
// about what people see now.
const requestLasts = time.Hour

// Request is what a person asks of the delivery of one source.
type Request struct {
	Verb Verb `json:"verb"`
	// Revision is what the request is about, such as the candidate's number as the
	// person saw it. A request about a revision that is no longer the candidate does
	// nothing, so a request that is done twice is done once.
	Revision int `json:"revision"`
	// To is the revision to go back to; 0 for every other request.
	To int `json:"to,omitempty"`
	// Stage is the stage that a Promote is about, as the person saw it. Unproven lets it
	// pass without evidence, and All ends the whole delivery.
	Stage    string `json:"stage,omitempty"`
	Unproven bool   `json:"unproven,omitempty"`
	All      bool   `json:"all,omitempty"`
	// By is the person's name, which is not verified.
	By string    `json:"by,omitempty"`
	At time.Time `json:"at"`
	// Refused is the leader's answer, if it did not do the request: why. It is stored until the
	// command reads it, or the next request takes its place.
	Refused string `json:"refused,omitempty"`
}

// Equal reports whether r and other are the same request, in whatever time zone each was
// written, and whether it was answered or not.
func (r Request) Equal(other Request) bool {
	at := r.At
	r.At, r.Refused = other.At, other.Refused
	return at.Equal(other.At) && r == other
}

func (r Request) String() string {
	at := r.At.UTC().Format(time.RFC3339)
	if r.By == "" {
		return "by an unnamed user at " + at
	}
	return fmt.Sprintf("by user %.256q (name not verified) at %s", r.By, at)
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
	if r.To == 0 && (r.Verb == Retry || r.Verb == Promote) {
		return r.Revision
	}
	return r.To
}

// Apply returns the revisions that the request changes, in the order to write them.
// The error says why it cannot be done. in is nil for a rule without a delivery,
// and current for a source whose content is not recorded.
func (r Request) Apply(in *stages.Stages, history revisions.History, current *revisions.Revision, now time.Time) ([]revisions.Revision, error) {
	revision, err := r.about(history, now)
	if err != nil {
		return nil, err
	}
	if r.To != 0 {
		return r.pin(history, revision, current)
	}
	changed, done := *revision, false
	switch r.Verb {
	case Rollback:
		changed, done = revision.Settled(revisions.Rejected, "rolled back "+r.String()), revision.UnderWay()
	case Promote:
		done = r.promote(&changed)
	case Pause:
		changed.Paused, done = r.String(), revision.Verdict == revisions.Delivering
	case Resume:
		done = resume(&changed)
	case Retry:
		done = retry(&changed, in, revision == history.Newest(), now)
		if history.Pinned() != nil && changed.Verdict == revisions.Delivering {
			changed.ChangedKeys = nil                                                           // what it was compared with may not be what clones have
			return append([]revisions.Revision{changed}, history.EndRollback(&changed)...), nil // also if only the first was written before
		}
	}
	if !done {
		return nil, fmt.Errorf("revision %d is %s, so there is nothing to %s", r.Revision, revision.Verdict, r.Verb)
	}
	return []revisions.Revision{changed}, nil
}

// about returns the revision that r is about.
func (r Request) about(history revisions.History, now time.Time) (*revisions.Revision, error) {
	if !r.At.IsZero() && now.Sub(r.At) > requestLasts {
		return nil, errors.New("the request is older than an hour; run the command again")
	}
	number := cmp.Or(r.To, r.Revision)
	if revision := history.Numbered(number); revision != nil {
		return revision, nil
	}
	return nil, fmt.Errorf("revision %d is not kept; `headwater history` lists those that are", number)
}

// promote approves the stage of r, lets it pass without evidence, or ends the delivery.
func (r Request) promote(changed *revisions.Revision) bool {
	if changed.Verdict != revisions.Delivering || r.Stage != "" && r.Stage != changed.Stage {
		return false
	}
	if r.All {
		*changed = changed.Settled(revisions.Delivered, "promoted to every namespace "+r.String())
		return true
	}
	changed.Approved = r.String()
	if r.Unproven {
		changed.Unproven = maps.Clone(changed.Unproven)
		if changed.Unproven == nil {
			changed.Unproven = map[string]string{}
		}
		changed.Unproven[changed.Stage] = r.String()
	}
	return true
}

// resume ends a pause or a rollback to r.
func resume(r *revisions.Revision) bool {
	switch {
	case r.Pinned != "":
		*r = r.Unpinned()
	case r.Paused != "":
		r.Paused = ""
	default:
		return false
	}
	return true
}

// retry delivers r again: from its stage if it is held, and from the first one if it
// was rejected. Then what failed before is looked at again. Without stages, it goes
// everywhere.
func retry(r *revisions.Revision, in *stages.Stages, newest bool, now time.Time) bool {
	switch {
	case in == nil && NotPassed(r):
		*r = r.Settled(revisions.Delivered, "")
		return true
	case in == nil:
		return false
	case r.Verdict == revisions.Held:
		r.Verdict = revisions.Delivering
		r.Enter(cmp.Or(r.Stage, in.Name(firstLeft(in, r))), now)
		return true
	case r.Verdict == revisions.Rejected && newest:
		r.Verdict, r.AllAtOnce, r.Passed, r.Evidence, r.EvidenceUnread = revisions.Delivering, false, nil, revisions.Evidence{}, nil
		r.Enter(in.Name(0), now)
		return true
	default:
		return false
	}
}

// pin returns the revisions that change when everything goes back to revision: no
// other one stays pinned, and a candidate is rejected. revision is the first of them,
// so that the clones go there directly.
func (r Request) pin(history revisions.History, revision, current *revisions.Revision) ([]revisions.Revision, error) {
	if revision.Verdict != revisions.Delivered {
		return nil, fmt.Errorf("revision %d was never delivered to every namespace: it is %s; choose a Delivered one of `headwater history`", revision.Number, revision.Verdict)
	}
	target := *revision
	target.Pinned, target.PinnedOver = r.String(), 0
	if current != nil {
		target.PinnedOver = current.Number
	}
	changed := []revisions.Revision{target}
	for _, other := range history {
		switch {
		case other == revision:
		case other.UnderWay():
			changed = append(changed, other.Settled(revisions.Rejected, fmt.Sprintf("rolled back to revision %d %s", revision.Number, r)))
		case other.Pinned != "":
			changed = append(changed, other.Unpinned())
		}
	}
	return changed, nil
}
