package notify

import "github.com/headwater-k8s/headwater/internal/kube/events"

// Topic is a kind of Event that a receiver can subscribe to.
type Topic string

// The topics.
const (
	Missing    Topic = "Missing"    // a source does not exist
	Failed     Topic = "Failed"     // a write failed or was reverted
	Held       Topic = "Held"       // waiting for an approval or for a missing object
	Conflict   Topic = "Conflict"   // an unmanaged object or another rule uses the name
	Refused    Topic = "Refused"    // the configuration asks for something that Headwater never does
	Denied     Topic = "Denied"     // a request violated a rule
	Tampered   Topic = "Tampered"   // a webhook or policy was changed and restored
	Unproven   Topic = "Unproven"   // a rule could not be verified
	Invalid    Topic = "Invalid"    // an invalid configuration or certificate
	Propagated Topic = "Propagated" // a change reached every clone
	Reloaded   Topic = "Reloaded"   // consumers were restarted or refreshed
	// RolloutStuck: a restarted workload does not complete its rollout.
	RolloutStuck Topic = "RolloutStuck"
	// Topics of rules with a delivery.
	DeliveryStarted    Topic = "DeliveryStarted" // a revision starts with its first stage
	StagePassed        Topic = "StagePassed"
	Delivered          Topic = "Delivered"          // a revision passed every stage
	Rejected           Topic = "Rejected"           // a revision is not valid
	DeliveryRolledBack Topic = "DeliveryRolledBack" // a revision failed its gate
)

// Topics lists all topics.
func Topics() []Topic {
	return []Topic{
		Missing, Failed, Held, Conflict, Refused, Denied, Tampered, Unproven, Invalid, Propagated, Reloaded, RolloutStuck,
		DeliveryStarted, StagePassed, Delivered, Rejected, DeliveryRolledBack,
	}
}

// byDefault lists the default topics: those that need attention by the platform
// team. It omits topics that users can trigger at will.
func byDefault() []Topic {
	return []Topic{Missing, Failed, Held, Conflict, Refused, Tampered, Unproven, Invalid, RolloutStuck, Rejected, DeliveryRolledBack}
}

// topics maps the reason of an Event to its topic. Events with another reason
// only concern the owner of a workload, who sees them on the workload.
var topics = map[string]Topic{
	"SourceMissing": Missing,

	"CloneFailed":    Failed,
	"RestartFailed":  Failed,
	"RefreshFailed":  Failed,
	"AdoptFailed":    Failed,
	"MayReadOldData": Failed,
	"StampReverted":  Failed,
	"TargetLost":     Failed,

	"MassRemoval":   Held,
	"SourceEmptied": Held,
	"KeyMissing":    Held,
	"Invalid":       Held,
	"DeliveryHeld":  Held,
	"RestartHeld":   Held,
	"RestartWaits":  Held, // only as a warning, from the breaker

	"Conflict":       Conflict,
	"OtherRule":      Conflict,
	"TargetConflict": Conflict,
	"Fighting":       Conflict,

	"ForbiddenType":   Refused,
	"SystemNamespace": Refused,
	"OwnNamespace":    Refused,
	"SourceIsClone":   Refused,
	"TooLarge":        Refused,
	"TargetRefused":   Refused,

	"Denied":  Denied,
	"Audited": Denied,

	"Tampered": Tampered,

	"ProtectionNotProven": Unproven,

	"ConfigInvalid":       Invalid,
	"CertificateUnusable": Invalid,

	"Propagated": Propagated,

	"RolloutStuck": RolloutStuck,

	"DeliveryStarted":    DeliveryStarted,
	"StagePassed":        StagePassed,
	"Delivered":          Delivered,
	"Rejected":           Rejected,
	"DeliveryRolledBack": DeliveryRolledBack,

	"Reloaded":     Reloaded, // owners see one Event on each consumer
	"FieldsSet":    Reloaded,
	"FieldsHealed": Reloaded,
}

// topicOf returns the topic of event, or "" if it has none.
func topicOf(event events.Event) Topic {
	if event.Reason == "RestartWaits" && !event.Warning {
		return ""
	}
	if event.Reason == "RolloutStuck" && event.Action == "Reload" {
		return "" // the Event about the changed object counts these
	}
	return topics[event.Reason]
}

// seenByAll reports whether every replica emits Events of t. Only the leader
// reports these. Other Events come from one replica, which may not be the
// leader: for example the one that answered a review.
func (t Topic) seenByAll() bool { return t == Invalid }

// lasting reports whether t is about persisting conditions. Their Events
// repeat, because the API server deletes Events after an hour.
func (t Topic) lasting() bool {
	return t == Missing || t == Failed || t == Held || t == Conflict || t == Refused || t == RolloutStuck
}
