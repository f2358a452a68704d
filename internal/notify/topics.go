package notify

import "github.com/headwater-k8s/headwater/internal/kube/events"

// Topic is what a receiver asks to hear about.
type Topic string

// The topics.
const (
	Missing    Topic = "Missing"    // a source that is not there
	Failed     Topic = "Failed"     // could not be written, or did not last
	Held       Topic = "Held"       // waits for a person, or for what is missing
	Conflict   Topic = "Conflict"   // somebody else has the place
	Refused    Topic = "Refused"    // asked for by the file, and never done
	Denied     Topic = "Denied"     // a write that a rule keeps out, or would
	Tampered   Topic = "Tampered"   // what keeps others out was changed, and restored
	Unproven   Topic = "Unproven"   // a rule that was not seen to protect
	Invalid    Topic = "Invalid"    // a file or a certificate that cannot be used
	Propagated Topic = "Propagated" // a change that reached the last clone
	Reloaded   Topic = "Reloaded"   // consumers that were made to pick a change up
	// RolloutStuck: workloads that were restarted and do not complete their rollout.
	RolloutStuck Topic = "RolloutStuck"
)

// Topics are all of them.
func Topics() []Topic {
	return []Topic{Missing, Failed, Held, Conflict, Refused, Denied, Tampered, Unproven, Invalid, Propagated, Reloaded, RolloutStuck}
}

// byDefault is what calls for a person of the platform team. What others bring
// about at will is not in it.
func byDefault() []Topic {
	return []Topic{Missing, Failed, Held, Conflict, Refused, Tampered, Unproven, Invalid, RolloutStuck}
}

// topics are those of Events, by reason. What is not in it concerns the owner
// of a workload alone, who sees it there.
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
	"RestartHeld":   Held,
	"RestartWaits":  Held, // as a warning alone, that of the breaker

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

	"Reloaded":     Reloaded, // of each consumer its owner sees an Event
	"FieldsSet":    Reloaded,
	"FieldsHealed": Reloaded,
}

// topicOf returns "" for what nobody can ask for.
func topicOf(event events.Event) Topic {
	if event.Reason == "RestartWaits" && !event.Warning {
		return ""
	}
	if event.Reason == "RolloutStuck" && event.Action == "Reload" {
		return "" // that of the object that changed counts what those of the workloads name
	}
	return topics[event.Reason]
}

// seenByAll reports whether every replica tells of t: then the leader reports
// it. All else is told by one, which may not be the leader: who was asked about
// a write.
func (t Topic) seenByAll() bool { return t == Invalid }

// lasting reports whether t is how something stands, rather than what happened:
// Events repeat that, since they are forgotten after an hour.
func (t Topic) lasting() bool {
	return t == Missing || t == Failed || t == Held || t == Conflict || t == Refused || t == RolloutStuck
}
