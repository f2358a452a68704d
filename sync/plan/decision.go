package plan

import (
	"github.com/headwater-k8s/headwater/internal/object"
)

// Action is what Plan wants done in one place.
type Action string

// The actions. Leave, Refuse and Hold write nothing.
const (
	Create   Action = "Create"
	Update   Action = "Update"
	Recreate Action = "Recreate" // delete and create: the API forbids the change on the live object
	Remove   Action = "Delete"
	Release  Action = "Release" // take Headwater's marks off; the object stays
	Leave    Action = "Leave"
	Refuse   Action = "Refuse" // needs a person: somebody else's object, or a source that must not be cloned
	Hold     Action = "Hold"   // would do damage: waits until its cause is gone, or a person approves
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
	CloneTerminating   Reason = "CloneTerminating"
	SourceDeleted      Reason = "SourceDeleted"
	SourceTerminating  Reason = "SourceTerminating"
	SourceEmptied      Reason = "SourceEmptied"
	KeyMissing         Reason = "KeyMissing"
	ForbiddenType      Reason = "ForbiddenType"
	SystemNamespace    Reason = "SystemNamespace"
	OwnNamespace       Reason = "OwnNamespace"
	SourceIsClone      Reason = "SourceIsClone"
	TooLarge           Reason = "TooLarge"
	RuleRemoved        Reason = "RuleRemoved"
	RuleChanged        Reason = "RuleChanged"
	Pruned             Reason = "Pruned"
	Released           Reason = "Released"
	Conflict           Reason = "Conflict"
	OtherRule          Reason = "OtherRule"
	MassRemoval        Reason = "MassRemoval"
)

// Decision is Plan's answer.
type Decision struct {
	Action  Action
	Reason  Reason
	Message string
	// Desired is what Create, Update and Recreate are to write.
	Desired *object.Full
}

// Writes reports whether carrying the step out writes to the API server.
func (s Decision) Writes() bool {
	return s.Action == Create || s.Action == Update || s.Action == Recreate || s.Action == Remove || s.Action == Release
}

// IsGuarded reports whether the guard is asked before the step: it removes a
// clone, and no person asked for that by name.
func (s Decision) IsGuarded() bool { return s.Action == Remove && s.Reason != Pruned }

func leave(reason Reason) Decision { return Decision{Action: Leave, Reason: reason} }

func refuse(reason Reason, message string) *Decision {
	return &Decision{Action: Refuse, Reason: reason, Message: message}
}

func hold(reason Reason, message string) *Decision {
	return &Decision{Action: Hold, Reason: reason, Message: message}
}
