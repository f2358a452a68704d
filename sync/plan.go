package sync

import (
	"fmt"
	"slices"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// Action is what Plan wants done about one clone.
type Action string

// The actions. Leave, Refuse and Hold write nothing.
const (
	Create   Action = "Create"
	Update   Action = "Update"
	Recreate Action = "Recreate" // delete and create: the API forbids the change on the live object
	Remove   Action = "Delete"
	Leave    Action = "Leave"
	Refuse   Action = "Refuse" // needs a person: somebody else's object, or a source that must not be cloned
	Hold     Action = "Hold"   // would do damage: waits until its cause is gone
)

// Reason says why, as a constant for metrics and Events.
type Reason string

// The reasons.
const (
	Missing            Reason = "Missing"
	Outdated           Reason = "Outdated"
	Unmarked           Reason = "Unmarked"
	TakenOver          Reason = "TakenOver"
	TypeChanged        Reason = "TypeChanged"
	WasImmutable       Reason = "Immutable"
	InSync             Reason = "InSync"
	NotSelected        Reason = "NotSelected"
	NamespaceUnmatched Reason = "NamespaceUnmatched"
	NamespaceGone      Reason = "NamespaceGone"
	SourceDeleted      Reason = "SourceDeleted"
	SourceTerminating  Reason = "SourceTerminating"
	SourceEmptied      Reason = "SourceEmptied"
	KeyMissing         Reason = "KeyMissing"
	ForbiddenType      Reason = "ForbiddenType"
	RuleRemoved        Reason = "RuleRemoved"
	Conflict           Reason = "Conflict"
	OtherRule          Reason = "OtherRule"
)

// Namespace is what Plan needs to know of the target namespace.
type Namespace struct {
	Name        string
	Labels      map[string]string
	Terminating bool
}

// State is everything that Plan decides on: what is, as the caches show it.
type State struct {
	// Rule is nil when the file no longer has it.
	Rule *Rule
	// Source is nil when it does not exist.
	Source *object.Full
	// Namespace is nil when it does not exist.
	Namespace *Namespace
	// Clone is the object of the target's name that carries the clone label.
	Clone *object.Digested
	// Taken is true when an object of the target's name lacks that label;
	// WrittenByUs, when it is a clone that lost it.
	Taken, WrittenByUs bool
	// Found is the object of somebody else's in the target's place, where the
	// rule may take it over; see MayTakeOver.
	Found *object.Digested
	// Claimant is the name of an earlier rule that wants the same target.
	Claimant string
}

// Step is Plan's answer.
type Step struct {
	Action  Action
	Reason  Reason
	Message string
	// Desired is what Create, Update and Recreate are to write.
	Desired *object.Full
}

// Writes reports whether carrying the step out writes to the API server.
func (s Step) Writes() bool {
	return s.Action == Create || s.Action == Update || s.Action == Recreate || s.Action == Remove
}

// Plan decides what to do about one clone. It is pure: the same state always
// gives the same step, and a step carried out gives a state that needs none.
func Plan(s State) Step {
	switch {
	case s.Namespace == nil || s.Namespace.Terminating:
		return Step{Action: Leave, Reason: NamespaceGone}
	case s.Rule == nil:
		return Step{Action: Leave, Reason: RuleRemoved}
	case !s.Rule.namespaces.Matches(s.Namespace.Name, s.Namespace.Labels):
		return s.withoutReason(NamespaceUnmatched, s.Rule.OnNamespaceUnmatched)
	case s.Source == nil:
		return s.withoutReason(SourceDeleted, s.Rule.OnSourceDeleted)
	case s.Claimant != "":
		return refuse(OtherRule, fmt.Sprintf("rule %q comes first in the file and clones to the same name", s.Claimant))
	}
	if obstacle := s.obstacle(); obstacle != nil {
		return *obstacle
	}
	desired := Desired(*s.Rule, s.Source, s.Namespace.Name)
	step := s.converge(desired)
	if step.Writes() {
		step.Desired = desired
	}
	return step
}

func refuse(reason Reason, message string) Step {
	return Step{Action: Refuse, Reason: reason, Message: message}
}

// withoutReason is the step for a clone that no rule calls for any more.
func (s State) withoutReason(reason Reason, policy OnGone) Step {
	if s.Clone == nil {
		return Step{Action: Leave, Reason: NotSelected}
	}
	marks, ours := mark.Of(s.Clone)
	if !ours || marks.Rule != s.Rule.Name || policy == Retain {
		return Step{Action: Leave, Reason: reason}
	}
	return Step{Action: Remove, Reason: reason}
}

// obstacle is the step when the source or the target forbids cloning.
func (s State) obstacle() *Step {
	if s.Source.DeletionTimestamp != nil {
		return &Step{Action: Leave, Reason: SourceTerminating, Message: "the source is being deleted; its clones stay as they are"}
	}
	if why := forbiddenType(s.Source.Content.Type); why != "" {
		step := refuse(ForbiddenType, why)
		return &step
	}
	for _, key := range s.Rule.Target.Keys {
		if _, found := s.Source.Digests.Sum(key.From); !found {
			message := fmt.Sprintf("the source has no key %q; its clones stay as they are", key.From)
			return &Step{Action: Hold, Reason: KeyMissing, Message: message}
		}
	}
	if s.Source.Content.Empty() && s.Clone != nil && len(s.Clone.Digests) > 0 {
		return &Step{Action: Hold, Reason: SourceEmptied, Message: "the source was emptied; its clones keep what they have"}
	}
	return nil
}

// converge brings the target to what the rule and the source say.
func (s State) converge(desired *object.Full) Step {
	if s.Clone == nil {
		return s.withoutClone(desired)
	}
	if _, ours := mark.Of(s.Clone); !ours && !s.Clone.WrittenByUs {
		return s.takeOver(s.Clone, desired)
	}
	switch {
	case matches(desired, s.Clone):
		return Step{Action: Leave, Reason: InSync}
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
func (s State) takeOver(found *object.Digested, desired *object.Full) Step {
	if found == nil || s.Rule.OnConflict == ConflictSkip {
		return s.conflict()
	}
	if s.Rule.OnConflict == ConflictAdoptIfEqual && !samePayload(desired, found) {
		return s.conflict()
	}
	if found.Type != desired.Content.Type || changesImmutable(desired, found) {
		return Step{Action: Recreate, Reason: TakenOver}
	}
	return Step{Action: Update, Reason: TakenOver}
}

// MayTakeOver reports whether Plan needs to know what the object in the way
// holds.
func (s State) MayTakeOver() bool {
	return s.Clone == nil && s.Taken && !s.WrittenByUs && s.Rule != nil && s.Rule.OnConflict != ConflictSkip
}

// live is the object in the target's place, as far as it is known.
func (s State) live() *object.Digested {
	if s.Clone != nil {
		return s.Clone
	}
	return s.Found
}

func (s State) withoutClone(desired *object.Full) Step {
	switch {
	case !s.Taken:
		return Step{Action: Create, Reason: Missing}
	case s.WrittenByUs:
		return Step{Action: Update, Reason: Unmarked}
	default:
		return s.takeOver(s.Found, desired)
	}
}

// changesImmutable reports whether live is immutable and desired changes what
// the API server then lets nobody change.
func changesImmutable(desired *object.Full, live *object.Digested) bool {
	return live.Immutable && (!desired.Content.Immutable || !slices.Equal(desired.Digests, live.Digests))
}

func (s State) conflict() Step {
	what := "is not Headwater's"
	if s.Rule.OnConflict == ConflictAdoptIfEqual {
		what += " and differs from the source"
	}
	return refuse(Conflict, fmt.Sprintf(
		"rule %q wants to clone here, but this object %s; delete or rename it, or exclude the namespace", s.Rule.Name, what))
}

func forbiddenType(secretType string) string {
	switch secretType {
	case "kubernetes.io/service-account-token":
		return "a service account's token must not leave its namespace"
	case "bootstrap.kubernetes.io/token":
		return "a bootstrap token must not leave kube-system"
	case "helm.sh/release.v1":
		return "a Helm release's state belongs to its namespace alone"
	default:
		return ""
	}
}
