package plan

import (
	"fmt"
	"slices"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// Plan decides what to do at one target. It is pure: the same state always gives
// the same decision, and after the decision is carried out, Plan wants no write.
func Plan(s State) Decision {
	if decision, unwanted := s.Unwanted(); unwanted {
		return decision
	}
	decision := s.unlessSuspended(s.wanted())
	if decision.Writes() {
		decision.Desired = s.Candidates[0].Desired(s.Namespace.Name)
	}
	return decision
}

// wanted returns the decision for a target that a rule with a source wants a clone at.
func (s State) wanted() Decision {
	candidate := s.Candidates[0]
	if obstacle := s.blocked(candidate); obstacle != nil {
		return *obstacle
	}
	wanted := candidate.wanted()
	if wanted.tooLarge != nil {
		return *wanted.tooLarge
	}
	return s.converge(candidate, wanted)
}

// unlessSuspended returns decision, or no write while the first rule that wants the target,
// or the one that the clone is of, is suspended.
func (s State) unlessSuspended(decision Decision) Decision {
	var rule *spec.Rule
	if len(s.Candidates) > 0 {
		rule = s.Candidates[0].Rule
	}
	if s.Former != nil && s.Former.Suspended {
		rule = s.Former
	}
	if rule == nil || !rule.Suspended || !decision.Writes() {
		return decision
	}
	return Decision{Action: Leave, Reason: Suspended, Message: fmt.Sprintf("rule %q is suspended; without that, the action would be %s (%s)", rule.Name, decision.Action, decision.Reason)}
}

// Unwanted returns the decision for a target that no rule wants a clone at. unwanted is
// false if a rule with an existing source wants one.
func (s State) Unwanted() (decision Decision, unwanted bool) {
	switch {
	case s.Namespace == nil || s.Namespace.Terminating:
		return leave(NamespaceGone), true
	case len(s.Candidates) == 0:
		return s.unlessSuspended(s.orphaned()), true
	case s.Candidates[0].Source == nil:
		return s.unlessSuspended(s.withoutSource(s.Candidates[0].Rule)), true
	default:
		return Decision{}, false
	}
}

// withoutSource returns the decision for a target of rule whose source does not
// exist. A clone of another rule follows that rule's policies. It is left alone
// while that rule is a lower-priority candidate with a source.
func (s State) withoutSource(rule *spec.Rule) Decision {
	if s.Clone == nil {
		return leave(SourceDeleted)
	}
	marks, _ := mark.Of(s.Clone)
	if marks.Rule == rule.Name {
		return s.onGone(rule, SourceDeleted, rule.OnSourceDeleted)
	}
	outranked := func(c Candidate) bool { return c.Rule.Name == marks.Rule && c.Source != nil }
	if slices.ContainsFunc(s.Candidates, outranked) {
		return leave(OtherRule)
	}
	return s.orphaned()
}

// orphaned returns the decision about a clone that no rule wants any more.
func (s State) orphaned() Decision {
	if s.Clone == nil {
		return leave(NotSelected)
	}
	marks, _ := mark.Of(s.Clone)
	switch former := s.Former; {
	case s.Clone.IsTerminating():
		return leave(CloneTerminating)
	case former == nil:
		return s.ruleRemoved(marks)
	case !former.Reaches(marks.Source, s.Target):
		return s.onGone(former, RuleChanged, former.OnRuleRemoved)
	case !former.Namespaces.Matches(s.Namespace.Name, s.Namespace.Labels):
		return s.onGone(former, NamespaceUnmatched, former.OnNamespaceUnmatched)
	default: // the selector no longer matches the source, or the source was deleted
		return s.onGone(former, SourceDeleted, former.OnSourceDeleted)
	}
}

// onGone applies the policy of rule, one of its OnGone fields, to its clone.
func (s State) onGone(rule *spec.Rule, reason Reason, policy spec.OnGone) Decision {
	if s.Clone == nil {
		return leave(reason)
	}
	marks, _ := mark.Of(s.Clone)
	if marks.Rule != rule.Name || policy == spec.Retain || s.Clone.IsTerminating() {
		return leave(reason)
	}
	return s.remove(marks, reason)
}

// remove returns the removal of the clone, which has these marks, if they name its place or
// a user requested it.
func (s State) remove(marks mark.Clone, reason Reason) Decision {
	switch {
	case marks.Place == object.Here:
		return Decision{Action: Remove, Reason: reason}
	case s.Requested == PruneClones:
		return Decision{Action: Remove, Reason: Pruned}
	default:
		return Decision{Action: Leave, Reason: PlaceUnknown, Message: "an earlier build wrote this clone, or what it is a copy of, without its namespace and name, " +
			"so Headwater does not delete it by itself; if nothing needs it, run `headwater prune " + marks.Rule + "`"}
	}
}

// blocked returns the decision if the source or the existing clone forbids a write
// now; else nil.
func (s State) blocked(candidate Candidate) *Decision {
	source := candidate.Source
	if source.DeletionTimestamp != nil {
		return &Decision{Action: Leave, Reason: SourceTerminating, Message: "the source is being deleted; its clones stay as they are"}
	}
	if refused := forbidden(candidate.Rule, source); refused != nil {
		return refused
	}
	if held := s.heldContent(candidate); held != nil {
		return held
	}
	if candidate.Unrecorded {
		return &Decision{Action: Leave, Reason: NotRecorded, Message: "no revision of the source may be delivered yet; its clones stay as they are"}
	}
	if s.Clone != nil && s.Clone.IsTerminating() {
		return &Decision{Action: Leave, Reason: CloneTerminating, Message: "the clone is being deleted; Headwater recreates it afterwards"}
	}
	return nil
}

// heldContent returns the decision if the content of the candidate's source must
// not reach the clone; else nil.
func (s State) heldContent(candidate Candidate) *Decision {
	for _, key := range candidate.Rule.Target.Keys {
		if _, found := candidate.Source.Digests.Sum(key.From); !found {
			return hold(KeyMissing, fmt.Sprintf("the source has no key %q; its clones stay as they are", key.From))
		}
	}
	if candidate.Invalid != "" && !s.hasContentOf(candidate) {
		held := hold(Invalid, fmt.Sprintf("the source's %s; its clones stay as they are", candidate.Invalid))
		if held.Until = candidate.ValidFrom; !held.Until.IsZero() {
			held.Message += " until then"
		}
		return held
	}
	if candidate.Emptied != "" && !s.hasContentOf(candidate) {
		return hold(SourceEmptied, fmt.Sprintf("the source has %s; its clones stay as they are, and none is created, until there is a value or "+
			"you run `headwater approve %s`", candidate.Emptied, candidate.Rule.Name))
	}
	return nil
}

// hasContentOf reports whether the clone has the content of the candidate's source
// already, so that there is nothing to hold back: the content was delivered before
// the rule had the check that it fails.
func (s State) hasContentOf(candidate Candidate) bool {
	clone := s.clone()
	return clone != nil && candidate.wanted().HasPayloadOf(clone)
}

// converge returns the write that makes the target match the rule and the source.
func (s State) converge(candidate Candidate, wanted *Wanted) Decision {
	if s.Clone == nil {
		return s.withoutClone(candidate, wanted)
	}
	switch {
	case wanted.matches(s.Clone):
		return leave(InSync)
	case s.Clone.Type != wanted.Type:
		return Decision{Action: Recreate, Reason: TypeChanged}
	case changesImmutable(wanted, s.Clone):
		return Decision{Action: Recreate, Reason: WasImmutable}
	default:
		return Decision{Action: Update, Reason: Outdated}
	}
}

// takeOver applies the rule's onConflict to an object that Headwater does not
// manage.
func (s State) takeOver(candidate Candidate, found *object.Digested, wanted *Wanted) Decision {
	if found == nil || candidate.Rule.OnConflict == spec.ConflictSkip {
		return conflict(candidate.Rule)
	}
	if candidate.Rule.OnConflict == spec.ConflictAdoptIfEqual && !wanted.HasPayloadOf(found) {
		return conflict(candidate.Rule)
	}
	if needsNew(wanted, found) {
		return Decision{Action: Recreate, Reason: TakenOver}
	}
	return Decision{Action: Update, Reason: TakenOver}
}

// needsNew reports whether live must be recreated to become what is wanted.
func needsNew(wanted *Wanted, live *object.Digested) bool {
	return live.Type != wanted.Type || changesImmutable(wanted, live)
}

func (s State) withoutClone(candidate Candidate, wanted *Wanted) Decision {
	switch {
	case !s.Taken:
		return Decision{Action: Create, Reason: Missing}
	case s.MadeByUs && s.Found == nil:
		return Decision{Action: Update, Reason: Unmarked}
	case s.isMarked() && wanted.matches(s.Found): // it has the marks by now, and the cache is behind
		return leave(InSync)
	case s.MadeByUs && !needsNew(wanted, s.Found):
		return Decision{Action: Update, Reason: Unmarked}
	default:
		return s.takeOver(candidate, s.Found, wanted)
	}
}

// isMarked reports whether the object that was read is marked as a clone.
func (s State) isMarked() bool { return s.Found != nil && mark.IsMarked(s.Found) }

// changesImmutable reports whether live is immutable and differs from what is wanted in fields
// that the API server then does not allow to change.
func changesImmutable(wanted *Wanted, live *object.Digested) bool {
	return live.Immutable && (!wanted.Immutable || !slices.Equal(wanted.Digests, live.Digests))
}

func conflict(rule *spec.Rule) Decision {
	what, choices := "is not managed by Headwater", "AdoptIfEqual or Overwrite"
	if rule.OnConflict == spec.ConflictAdoptIfEqual {
		what, choices = what+" and differs from the source", string(spec.ConflictOverwrite)
	}
	return *refuse(Conflict, fmt.Sprintf(
		"rule %q wants to clone here, but this object %s; delete or rename it, exclude the namespace, or set sync.onConflict to %s", rule.Name, what, choices))
}
