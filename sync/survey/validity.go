package survey

import (
	"context"
	"fmt"
	"maps"
	"time"
	"weak"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/internal/validate"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// maxVerdicts is how many versions of sources a Reader remembers.
const maxVerdicts = 1024

// checkedVersion is a version of a source under the checks of one rule.
type checkedVersion struct {
	checks          *validate.Validator
	uid             types.UID
	resourceVersion string
}

// checkedRevision is a revision under the checks of one rule.
type checkedRevision struct {
	checks   *validate.Validator
	revision weak.Pointer[revisions.Revision]
}

// Judge returns what checks say of source now. It judges each version once, not once for
// each clone, and again when a certificate becomes valid or expires.
func (o *Reader) Judge(checks *validate.Validator, source *object.Full) validate.Verdict {
	if checks == nil || source == nil {
		return validate.Verdict{}
	}
	return o.judge(checks, checkedVersion{checks, source.UID, source.ResourceVersion}, source.Content, writtenAt(source))
}

// judge returns what checks say now of content that was written at a time, which version
// identifies.
func (o *Reader) judge(checks *validate.Validator, version any, content object.Content, written time.Time) validate.Verdict {
	now := o.Now()
	if known, found := o.verdicts.Get(version); found && known.(validate.Verdict).HoldsAt(now) {
		return known.(validate.Verdict)
	}
	verdict := checks.Judge(content, written, now)
	o.verdicts.Add(version, verdict)
	return verdict
}

// expired is SourceState.Expired of source. A rule with a history clones what is delivered of it.
func (o *Reader) expired(base rules.Base, source *object.Full) string {
	if base.Validator == nil {
		return ""
	}
	delivered := o.Revisions.History(revisions.Key{Rule: base.Name, Source: source.Ref()}).Base()
	if delivered == nil || delivered.SameContent(source.Content, source.Digests) {
		return o.Judge(base.Validator, source).Warning()
	}
	return o.judge(base.Validator, checkedRevision{base.Validator, weak.Make(delivered)}, delivered.Content, delivered.Recorded).Warning()
}

func writtenAt(source *object.Full) time.Time {
	if at := source.ChangedAt(); !at.IsZero() {
		return at
	}
	return source.CreationTimestamp.Time
}

// Lack returns what the clones of source by rule would lack; see plan.Wanted.
func (o *Reader) Lack(rule *spec.Rule, source *object.Full) plan.Lack {
	return o.wanted(plan.Candidate{Rule: rule, Source: source}, source, nil).Lacks
}

// Emptied returns what source lacks while that may reach no clone of rule; zero if it lacks
// nothing, or that is approved.
func (o *Reader) Emptied(rule *spec.Rule, source *object.Full) plan.Lack {
	lacks := o.Lack(rule, source)
	if o.approves(rule.Name, source.Ref(), lacks) {
		return plan.Lack{}
	}
	return lacks
}

// approves reports whether it is approved that the clones of source by rule lack that.
func (o *Reader) approves(rule string, source object.Ref, lacks plan.Lack) bool {
	return lacks.ID != "" && o.Approvals.Of(rule).Sources[source.String()] == lacks.ID
}

// How long, and how often, EndApproval looks whether the cache shows what it wrote.
const endTimeout, endPoll = 5 * time.Second, 10 * time.Millisecond

// EndApproval withdraws what was approved of an emptied source for rule if the source has
// something else now, and returns once the cache shows that. It goes before the first write of
// what the source has: no approval outlives the values that it let go. While approvals have not
// been read, it asks the API server for them.
func (o *Reader) EndApproval(ctx context.Context, rule *spec.Rule, ref object.Ref) error {
	of := func() string { return o.Approvals.Of(rule.Name).Sources[ref.String()] }
	isRead := o.Approvals.isRead() // before what it has
	approved := of()
	source, _ := o.Caches.Sources.Get(ref)
	if isRead && approved == "" || source == nil {
		return nil
	}
	lacks := o.Lack(rule, source).ID
	switch {
	case !isRead:
		err := o.withdraw(ctx, rule, ref, func(id string) bool { return id != lacks })
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	case lacks == approved:
		return nil
	}
	if err := o.withdraw(ctx, rule, ref, func(id string) bool { return id == approved }); err != nil {
		return err
	}
	if wait.PollUntilContextTimeout(ctx, endPoll, endTimeout, true, func(context.Context) (bool, error) { return of() != approved, nil }) != nil {
		return fmt.Errorf("the approval of an emptied source was withdrawn %s ago, and its watch does not show that yet; retrying", endTimeout)
	}
	return nil
}

// withdraw withdraws what was approved of a source for rule if it is over by the ID of what was
// lacking.
func (o *Reader) withdraw(ctx context.Context, rule *spec.Rule, ref object.Ref, isOver func(id string) bool) error {
	err := ChangeApproval(ctx, o.Approvals.client, o.Approvals.Ref.Namespace, rule.Name, func(stored Approval) Approval {
		maps.DeleteFunc(stored.Sources, func(name, id string) bool { return name == ref.String() && isOver(id) })
		return stored
	})
	if err != nil {
		return fmt.Errorf("withdraw the approval of an emptied source before its clones get a value again: %w", err)
	}
	return nil
}

// RevisionLacks returns what the clones of revision by rule would lack while that may reach no
// clone; zero if they lack nothing, or that is approved.
func (o *Reader) RevisionLacks(rule *spec.Rule, revision *revisions.Revision) plan.Lack {
	source := &object.Full{ObjectMeta: object.NewMeta(revision.Source), Kind: revision.Source.Kind}
	lacks := plan.NewWanted(rule, withContent(source, revision), 0).Lacks
	if o.approves(rule.Name, revision.Source, lacks) {
		return plan.Lack{}
	}
	return lacks
}

// Empties reports whether the clone of state loses its values by an approval.
func (o *Reader) Empties(state plan.State) bool {
	if state.Clone == nil || len(state.Candidates) == 0 || state.Candidates[0].Wanted == nil {
		return false
	}
	first := state.Candidates[0]
	return o.approves(first.Rule.Name, first.Ref, first.Wanted.Lacks) && !first.Wanted.HasPayloadOf(state.Clone)
}

// AllHave reports whether source has clones, and all that rule may write have its content, of
// whatever rule: then nobody loses anything by it, and no single namespace decides.
func (o *Reader) AllHave(rule *spec.Rule, source *object.Full) bool {
	wanted, clones := o.wanted(plan.Candidate{Rule: rule, Source: source}, source, nil), 0
	for _, target := range o.Targets(*rule, source.Ref()) {
		state, err := o.State(target)
		switch {
		case err != nil:
			return false
		case state.Namespace == nil || state.Namespace.Terminating || !state.MayWrite(rule):
		case state.Clone == nil || !wanted.HasPayloadOf(state.Clone):
			return false
		default:
			clones++
		}
	}
	return clones > 0
}
