package plan

import (
	"fmt"
	"slices"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// Plan decides what to do in one place. It is pure: the same state always
// gives the same step, and a step carried out gives a state that needs none.
func Plan(s State) Decision {
	if step := s.Unwanted(); step != nil {
		return *step
	}
	claim := s.Candidates[0]
	if obstacle := s.blocked(claim); obstacle != nil {
		return *obstacle
	}
	desired := Desired(*claim.Rule, claim.Source, s.Namespace.Name)
	if tooLarge := oversize(desired); tooLarge != nil {
		return *tooLarge
	}
	step := s.converge(claim, desired)
	if step.Writes() {
		step.Desired = desired
	}
	return step
}

// Unwanted is the step for a place where no clone is called for, or nil.
func (s State) Unwanted() *Decision {
	step := leave(NotSelected)
	switch {
	case s.Namespace == nil || s.Namespace.Terminating:
		step = leave(NamespaceGone)
	case len(s.Candidates) == 0:
		step = s.orphaned()
	case s.Candidates[0].Source == nil:
		step = s.withoutSource(s.Candidates[0].Rule)
	default:
		return nil
	}
	return &step
}

// withoutSource is the step for a place that rule has, while its source is not
// there. A clone of another rule goes or stays as that one says, which has no
// say while it would have its clone here, were it not for rule.
func (s State) withoutSource(rule *spec.Rule) Decision {
	if s.Clone == nil {
		return leave(SourceDeleted)
	}
	marks, ours := mark.Of(s.Clone)
	if !ours || marks.Rule == rule.Name {
		return s.onGone(rule, SourceDeleted, rule.OnSourceDeleted)
	}
	outranked := func(c Candidate) bool { return c.Rule.Name == marks.Rule && c.Source != nil }
	if slices.ContainsFunc(s.Candidates, outranked) {
		return leave(OtherRule)
	}
	return s.orphaned()
}

// orphaned is the step about a clone that no rule claims any more.
func (s State) orphaned() Decision {
	if s.Clone == nil {
		return leave(NotSelected)
	}
	marks, ours := mark.Of(s.Clone)
	switch former := s.Former; {
	case !ours:
		return leave(NotSelected)
	case s.Clone.DeletionTimestamp != nil:
		return leave(CloneTerminating)
	case former == nil:
		return s.abandoned(marks.OnRuleRemoved)
	case !former.Reaches(marks.Source, s.Target):
		return s.onGone(former, RuleChanged, former.OnRuleRemoved)
	case !former.Namespaces.Matches(s.Namespace.Name, s.Namespace.Labels):
		return s.onGone(former, NamespaceUnmatched, former.OnNamespaceUnmatched)
	default: // a selector's source that is gone, or lost its label
		return s.onGone(former, SourceDeleted, former.OnSourceDeleted)
	}
}

// onGone is the step about a clone that lost its reason, by its own rule's
// policy.
func (s State) onGone(rule *spec.Rule, reason Reason, policy spec.OnGone) Decision {
	if s.Clone == nil {
		return leave(reason)
	}
	marks, ours := mark.Of(s.Clone)
	if !ours || marks.Rule != rule.Name || policy == spec.Retain || s.Clone.DeletionTimestamp != nil {
		return leave(reason)
	}
	return Decision{Action: Remove, Reason: reason}
}

// blocked is the step when the source or the target forbids cloning.
func (s State) blocked(claim Candidate) *Decision {
	source := claim.Source
	if source.DeletionTimestamp != nil {
		return &Decision{Action: Leave, Reason: SourceTerminating, Message: "the source is being deleted; its clones stay as they are"}
	}
	if refused := forbidden(claim.Rule, source); refused != nil {
		return refused
	}
	for _, key := range claim.Rule.Target.Keys {
		if _, found := source.Digests.Sum(key.From); !found {
			return hold(KeyMissing, fmt.Sprintf("the source has no key %q; its clones stay as they are", key.From))
		}
	}
	if clone := s.clone(); source.Content.Empty() && !claim.Approved && clone != nil && len(clone.Digests) > 0 {
		return hold(SourceEmptied, fmt.Sprintf("the source was emptied; its clones keep what they have until "+
			"`headwater approve %s` says that this is meant", claim.Rule.Name))
	}
	if s.Clone != nil && s.Clone.DeletionTimestamp != nil {
		return &Decision{Action: Leave, Reason: CloneTerminating, Message: "made anew once it is gone"}
	}
	return nil
}

// converge brings the place to what the rule and the source say.
func (s State) converge(claim Candidate, desired *object.Full) Decision {
	if s.Clone == nil {
		return s.withoutClone(claim, desired)
	}
	_, ours := mark.Of(s.Clone)
	switch {
	case !ours && (!s.Clone.MadeByUs || needsNew(desired, s.Clone)):
		return s.takeOver(claim, s.Clone, desired)
	case matches(desired, s.Clone):
		return leave(InSync)
	case s.Clone.Type != desired.Content.Type:
		return Decision{Action: Recreate, Reason: TypeChanged}
	case changesImmutable(desired, s.Clone):
		return Decision{Action: Recreate, Reason: WasImmutable}
	default:
		return Decision{Action: Update, Reason: Outdated}
	}
}

// takeOver is the step about an object that is not ours, as the rule's
// onConflict says.
func (s State) takeOver(claim Candidate, found *object.Digested, desired *object.Full) Decision {
	if found == nil || claim.Rule.OnConflict == spec.ConflictSkip {
		return conflict(claim.Rule)
	}
	if claim.Rule.OnConflict == spec.ConflictAdoptIfEqual && !samePayload(desired, found) {
		return conflict(claim.Rule)
	}
	if needsNew(desired, found) {
		return Decision{Action: Recreate, Reason: TakenOver}
	}
	return Decision{Action: Update, Reason: TakenOver}
}

// needsNew reports whether live cannot become desired without being deleted.
func needsNew(desired *object.Full, live *object.Digested) bool {
	return live.Type != desired.Content.Type || changesImmutable(desired, live)
}

func (s State) withoutClone(claim Candidate, desired *object.Full) Decision {
	switch {
	case !s.Taken:
		return Decision{Action: Create, Reason: Missing}
	case s.MadeByUs && s.Found == nil:
		return Decision{Action: Update, Reason: Unmarked}
	case s.MadeByUs && matches(desired, s.Found): // it has the label again
		return leave(InSync)
	case s.MadeByUs && !needsNew(desired, s.Found):
		return Decision{Action: Update, Reason: Unmarked}
	default:
		return s.takeOver(claim, s.Found, desired)
	}
}

// changesImmutable reports whether live is immutable and desired changes what
// the API server then lets nobody change.
func changesImmutable(desired *object.Full, live *object.Digested) bool {
	return live.Immutable && (!desired.Content.Immutable || !slices.Equal(desired.Digests, live.Digests))
}

func conflict(rule *spec.Rule) Decision {
	what := "is not Headwater's"
	if rule.OnConflict == spec.ConflictAdoptIfEqual {
		what += " and differs from the source"
	}
	return *refuse(Conflict, fmt.Sprintf(
		"rule %q wants to clone here, but this object %s; delete or rename it, or exclude the namespace", rule.Name, what))
}
