package plan

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
)

// Action is what Plan wants done at one target.
type Action string

// The actions. Leave, Refuse and Hold write nothing.
const (
	Create   Action = "Create"
	Update   Action = "Update"
	Recreate Action = "Recreate" // delete and create: the API forbids the change on the live object
	Remove   Action = "Delete"
	Release  Action = "Release" // remove Headwater's marks; the object stays
	Leave    Action = "Leave"
	Refuse   Action = "Refuse" // a user must fix it: an unmanaged object, or a source that must not be cloned
	Hold     Action = "Hold"   // may do damage: waits until its cause is fixed or a user approves
)

// Reason says why. Metrics and Events contain it, so the values must not change.
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
	Invalid            Reason = "Invalid"
	ForbiddenType      Reason = "ForbiddenType"
	SystemNamespace    Reason = "SystemNamespace"
	OwnNamespace       Reason = "OwnNamespace"
	SourceIsClone      Reason = "SourceIsClone"
	TooLarge           Reason = "TooLarge"
	RuleRemoved        Reason = "RuleRemoved"
	PlaceUnknown       Reason = "PlaceUnknown"
	RuleChanged        Reason = "RuleChanged"
	Pruned             Reason = "Pruned"
	Released           Reason = "Released"
	Conflict           Reason = "Conflict"
	OtherRule          Reason = "OtherRule"
	MassRemoval        Reason = "MassRemoval"
	NotRecorded        Reason = "NotRecorded"
	NameFree           Reason = "NameFree"
	Suspended          Reason = "Suspended"
)

// Decision is Plan's answer.
type Decision struct {
	Action  Action
	Reason  Reason
	Message string
	// Desired is the object that Create, Update and Recreate write.
	Desired *object.Full
	// Until is when a hold ends by itself; zero if it does not.
	Until time.Time
}

// Writes reports whether the decision writes to the API server.
func (d Decision) Writes() bool {
	return d.Action == Create || d.Action == Update || d.Action == Recreate || d.Action == Remove || d.Action == Release
}

// IsGuarded reports whether the guard must allow the decision: it removes a clone,
// and no user requested that with `headwater prune`.
func (d Decision) IsGuarded() bool { return d.Action == Remove && d.Reason != Pruned }

func leave(reason Reason) Decision { return Decision{Action: Leave, Reason: reason} }

func refuse(reason Reason, message string) *Decision {
	return &Decision{Action: Refuse, Reason: reason, Message: message}
}

func hold(reason Reason, message string) *Decision {
	return &Decision{Action: Hold, Reason: reason, Message: message}
}
