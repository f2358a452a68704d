package notify

import (
	"github.com/headwater-k8s/headwater/internal/kube/events"
)

// topic is a kind of Event that a receiver can subscribe to.
type topic string

// The topics.
const (
	topicMissing    topic = "Missing"    // a source does not exist
	topicFailed     topic = "Failed"     // a write failed or was reverted
	topicHeld       topic = "Held"       // waiting for an approval or for a missing object
	topicConflict   topic = "Conflict"   // an unmanaged object or another rule uses the name
	topicRefused    topic = "Refused"    // the configuration asks for something that Headwater never does
	topicDenied     topic = "Denied"     // a request violated a rule
	topicTampered   topic = "Tampered"   // a webhook or policy was changed and restored
	topicUnproven   topic = "Unproven"   // a rule could not be verified
	topicInvalid    topic = "Invalid"    // an invalid configuration or certificate
	topicRulesHeld  topic = "RulesHeld"  // a configuration that removes too much waits for an approval
	topicPropagated topic = "Propagated" // a change reached every clone
	topicReloaded   topic = "Reloaded"   // consumers were restarted or refreshed
	// topicRolloutStuck: a restarted workload does not complete its rollout.
	topicRolloutStuck   topic = "RolloutStuck"
	topicLeaderFlapping topic = "LeaderFlapping" // the leader changes again and again
	// Topics of rules with a delivery.
	topicDeliveryStarted    topic = "DeliveryStarted" // a revision starts with its first stage
	topicStagePassed        topic = "StagePassed"
	topicDelivered          topic = "Delivered"          // a revision passed every stage
	topicRejected           topic = "Rejected"           // a revision is not valid
	topicDeliveryRolledBack topic = "DeliveryRolledBack" // a revision failed its gate
	topicNoEvidence         topic = "NoEvidence"         // no consumer has run a revision
	topicAwaitingApproval   topic = "AwaitingApproval"   // a stage passed, and somebody must promote
)

// Topics lists all topics.
func Topics() []topic {
	return []topic{
		topicMissing, topicFailed, topicHeld, topicConflict, topicRefused, topicDenied, topicTampered, topicUnproven, topicInvalid, topicRulesHeld, topicPropagated, topicReloaded, topicRolloutStuck, topicLeaderFlapping,
		topicDeliveryStarted, topicStagePassed, topicDelivered, topicRejected, topicDeliveryRolledBack, topicNoEvidence, topicAwaitingApproval,
	}
}

// byDefault lists the default topics: those that need attention by the platform
// team. It omits topics that users can trigger at will.
func byDefault() []topic {
	return []topic{topicMissing, topicFailed, topicHeld, topicConflict, topicRefused, topicTampered, topicUnproven, topicInvalid, topicRulesHeld, topicRolloutStuck, topicLeaderFlapping, topicRejected, topicDeliveryRolledBack, topicNoEvidence, topicAwaitingApproval}
}

// topics maps the reason of an Event to its topic. Events with another reason
// only concern the owner of a workload, who sees them on the workload.
var topics = map[string]topic{
	"SourceMissing": topicMissing,

	"CloneFailed":      topicFailed,
	"AdmissionChanges": topicFailed,
	"RestartFailed":    topicFailed,
	"RefreshFailed":    topicFailed,
	"AdoptFailed":      topicFailed,
	"MayReadOldData":   topicFailed,
	"StampReverted":    topicFailed,
	"RestartReverted":  topicFailed,
	"TargetLost":       topicFailed,

	"MassRemoval":   topicHeld,
	"SourceEmptied": topicHeld,
	"KeyMissing":    topicHeld,
	"Invalid":       topicHeld,
	"DeliveryHeld":  topicHeld,
	"EmptyStage":    topicHeld,
	"RestartHeld":   topicHeld,
	"RestartWaits":  topicHeld, // only as a warning, from the breaker

	"Conflict":       topicConflict,
	"OtherRule":      topicConflict,
	"TargetConflict": topicConflict,
	"Fighting":       topicConflict,

	"ForbiddenType":   topicRefused,
	"SystemNamespace": topicRefused,
	"OwnNamespace":    topicRefused,
	"SourceIsClone":   topicRefused,
	"TooLarge":        topicRefused,
	"TargetRefused":   topicRefused,

	"Denied":  topicDenied,
	"Audited": topicDenied,

	"Tampered": topicTampered,

	"ProtectionNotProven": topicUnproven,
	"WebhookSilent":       topicUnproven,

	"ConfigInvalid":         topicInvalid,
	"CertificateUnusable":   topicInvalid,
	"CertificateNotRenewed": topicInvalid,
	"RulesHeld":             topicRulesHeld,

	"Propagated": topicPropagated,

	"RolloutStuck": topicRolloutStuck,

	"LeaderFlapping": topicLeaderFlapping,

	"DeliveryStarted":    topicDeliveryStarted,
	"StagePassed":        topicStagePassed,
	"Delivered":          topicDelivered,
	"Rejected":           topicRejected,
	"DeliveryRolledBack": topicDeliveryRolledBack,
	"NoEvidence":         topicNoEvidence,
	"AwaitingApproval":   topicAwaitingApproval,

	"Reloaded":     topicReloaded, // owners see one Event on each consumer
	"FieldsSet":    topicReloaded,
	"FieldsHealed": topicReloaded,
}

// topicOf returns the topic of event, or "" if it has none.
func topicOf(event events.Event) topic {
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
func (t topic) seenByAll() bool { return t == topicInvalid || t == topicRulesHeld }

// lasting reports whether t is about persisting conditions. Their Events
// repeat, because the API server deletes Events after an hour.
func (t topic) lasting() bool {
	return t == topicMissing || t == topicFailed || t == topicHeld || t == topicConflict || t == topicRefused || t == topicRolloutStuck
}
