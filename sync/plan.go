package sync

import (
	"fmt"
	"slices"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// Namespace is what Plan needs to know of the target namespace.
type Namespace struct {
	Name        string
	Labels      map[string]string
	Terminating bool
}

// Claim is a rule's wish to have a clone of a source in some place.
type Claim struct {
	Rule *Rule
	Ref  object.Ref
	// Source is nil when it does not exist.
	Source *object.Full
	// Approved is true when a person approved that the clones be emptied with
	// this revision of the source.
	Approved bool
}

// State is everything that Plan decides on about one place in a namespace:
// what is, as the caches show it.
type State struct {
	Target object.Ref
	// Namespace is nil when it does not exist.
	Namespace *Namespace
	// Claims are in the file's order: the first wins.
	Claims []Claim
	// Clone is the object in the place when it carries the clone label.
	Clone *object.Digested
	// Former is the rule that the clone's marks name; nil when the file no
	// longer has it.
	Former *Rule
	// Asked is what a person wants done with the clone, whose rule the file no
	// longer has; empty when nothing is.
	Asked LeftoverFate
	// Taken is true when the object in the place lacks that label;
	// MadeByUs, when field managers tell that it is a clone that lost it. That
	// can be forged: it is reason to write, never to delete.
	Taken, MadeByUs bool
	// Found is the object that lacks the label, where more has to be known of
	// it; see NeedsFound.
	Found *object.Digested
}

// Plan decides what to do in one place. It is pure: the same state always
// gives the same step, and a step carried out gives a state that needs none.
func Plan(s State) Step {
	if step := s.withoutReason(); step != nil {
		return *step
	}
	claim := s.Claims[0]
	if obstacle := s.obstacle(claim); obstacle != nil {
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

// withoutReason is the step for a place where no clone is called for, or nil.
func (s State) withoutReason() *Step {
	step := leave(NotSelected)
	switch {
	case s.Namespace == nil || s.Namespace.Terminating:
		step = leave(NamespaceGone)
	case len(s.Claims) == 0:
		step = s.leftover()
	case s.Claims[0].Source == nil:
		step = s.withoutSource(s.Claims[0].Rule)
	default:
		return nil
	}
	return &step
}

// withoutSource is the step for a place that rule has, while its source is not
// there. A clone of another rule goes or stays as that one says, which has no
// say while it would have its clone here, were it not for rule.
func (s State) withoutSource(rule *Rule) Step {
	if s.Clone == nil {
		return leave(SourceDeleted)
	}
	marks, ours := mark.Of(s.Clone)
	if !ours || marks.Rule == rule.Name {
		return s.fate(rule, SourceDeleted, rule.OnSourceDeleted)
	}
	outranked := func(c Claim) bool { return c.Rule.Name == marks.Rule && c.Source != nil }
	if slices.ContainsFunc(s.Claims, outranked) {
		return leave(OtherRule)
	}
	return s.leftover()
}

// leftover is the step about a clone that no rule claims any more.
func (s State) leftover() Step {
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
	case !former.reaches(marks.Source, s.Target):
		return s.fate(former, RuleChanged, former.OnRuleRemoved)
	case !former.namespaces.Matches(s.Namespace.Name, s.Namespace.Labels):
		return s.fate(former, NamespaceUnmatched, former.OnNamespaceUnmatched)
	default: // a selector's source that is gone, or lost its label
		return s.fate(former, SourceDeleted, former.OnSourceDeleted)
	}
}

// fate is the step about a clone that lost its reason, by its own rule's
// policy.
func (s State) fate(rule *Rule, reason Reason, policy OnGone) Step {
	if s.Clone == nil {
		return leave(reason)
	}
	marks, ours := mark.Of(s.Clone)
	if !ours || marks.Rule != rule.Name || policy == Retain || s.Clone.DeletionTimestamp != nil {
		return leave(reason)
	}
	return Step{Action: Remove, Reason: reason}
}

// obstacle is the step when the source or the target forbids cloning.
func (s State) obstacle(claim Claim) *Step {
	source := claim.Source
	if source.DeletionTimestamp != nil {
		return &Step{Action: Leave, Reason: SourceTerminating, Message: "the source is being deleted; its clones stay as they are"}
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
		return &Step{Action: Leave, Reason: CloneTerminating, Message: "made anew once it is gone"}
	}
	return nil
}

// converge brings the place to what the rule and the source say.
func (s State) converge(claim Claim, desired *object.Full) Step {
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
		return Step{Action: Recreate, Reason: TypeChanged}
	case changesImmutable(desired, s.Clone):
		return Step{Action: Recreate, Reason: WasImmutable}
	default:
		return Step{Action: Update, Reason: Outdated}
	}
}

// takeOver is the step about an object that is not ours, as the rule's
// onConflict says.
func (s State) takeOver(claim Claim, found *object.Digested, desired *object.Full) Step {
	if found == nil || claim.Rule.OnConflict == ConflictSkip {
		return conflict(claim.Rule)
	}
	if claim.Rule.OnConflict == ConflictAdoptIfEqual && !samePayload(desired, found) {
		return conflict(claim.Rule)
	}
	if needsNew(desired, found) {
		return Step{Action: Recreate, Reason: TakenOver}
	}
	return Step{Action: Update, Reason: TakenOver}
}

// needsNew reports whether live cannot become desired without being deleted.
func needsNew(desired *object.Full, live *object.Digested) bool {
	return live.Type != desired.Content.Type || changesImmutable(desired, live)
}

// NeedsFound reports whether Plan needs to know what the object without the
// label holds: it may be written.
func (s State) NeedsFound() bool {
	return s.Clone == nil && s.Taken && len(s.Claims) > 0 &&
		(s.MadeByUs || s.Claims[0].Rule.OnConflict != ConflictSkip)
}

// clone is the clone in the place, also one that lost its label, as far as it
// is known.
func (s State) clone() *object.Digested {
	if s.Clone == nil && s.MadeByUs {
		return s.Found
	}
	return s.Clone
}

// live is the object in the place, as far as it is known.
func (s State) live() *object.Digested {
	if s.Clone != nil {
		return s.Clone
	}
	return s.Found
}

func (s State) withoutClone(claim Claim, desired *object.Full) Step {
	switch {
	case !s.Taken:
		return Step{Action: Create, Reason: Missing}
	case s.MadeByUs && s.Found == nil:
		return Step{Action: Update, Reason: Unmarked}
	case s.MadeByUs && matches(desired, s.Found): // it has the label again
		return leave(InSync)
	case s.MadeByUs && !needsNew(desired, s.Found):
		return Step{Action: Update, Reason: Unmarked}
	default:
		return s.takeOver(claim, s.Found, desired)
	}
}

// changesImmutable reports whether live is immutable and desired changes what
// the API server then lets nobody change.
func changesImmutable(desired *object.Full, live *object.Digested) bool {
	return live.Immutable && (!desired.Content.Immutable || !slices.Equal(desired.Digests, live.Digests))
}

func conflict(rule *Rule) Step {
	what := "is not Headwater's"
	if rule.OnConflict == ConflictAdoptIfEqual {
		what += " and differs from the source"
	}
	return *refuse(Conflict, fmt.Sprintf(
		"rule %q wants to clone here, but this object %s; delete or rename it, or exclude the namespace", rule.Name, what))
}
