package rulestatus

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/plural"
	"github.com/headwater-k8s/headwater/internal/text"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// The types of conditions. A rule has only those that concern it. Stalled, Reconciling
// and Suspended are present only while they are true; the first two are those of kstatus.
const (
	Ready              = "Ready"
	ConfigurationValid = "ConfigurationValid"
	SourceFound        = "SourceFound"
	Synced             = "Synced"
	Protected          = "Protected"
	Reloaded           = "Reloaded"
	Delivered          = "Delivered"
	Reconciling        = "Reconciling"
	Stalled            = "Stalled"
	Suspended          = "Suspended"
)

// The states of a delivery, which are also reasons of the condition Delivered.
const (
	DeliveryDelivered        = "Delivered"
	DeliveryDelivering       = "Delivering"
	DeliveryAwaitingApproval = "AwaitingApproval"
	DeliveryPaused           = "Paused"
	DeliveryNoEvidence       = "NoEvidence"
	DeliveryPinned           = "Pinned"
	DeliveryHeld             = "Held"
	DeliveryRejected         = "Rejected"
	DeliveryRecording        = "Recording"
)

// The values of Status.Protection for a rule that enforces, which are also reasons of
// the condition Protected.
const (
	protectionVerified    = "Verified"
	protectionNotVerified = "NotVerified"
	protectionUnknown     = "Unknown"
)

const enforce = "Enforce"

// NotCompared is the reason of the condition ConfigurationValid while the configuration
// that Headwater first started with is in force.
const NotCompared = "NotCompared"

// urgency is what a condition means for Ready.
type urgency int

const (
	// fine: it does not keep the rule from being ready.
	fine urgency = iota
	// progressing: it becomes true by itself.
	progressing
	// stuck: it may become true by itself, but not if it has been false for long.
	stuck
	// needsPerson: somebody has to do something.
	needsPerson
)

// finding is one condition, and what it means for Ready.
type finding struct {
	metav1.Condition

	urgency urgency
}

func found(name string, status metav1.ConditionStatus, reason, message string, urgency urgency) finding {
	message = text.Truncate(message, maxMessage)
	return finding{metav1.Condition{Type: name, Status: status, Reason: reason, Message: message}, urgency}
}

// findings returns the conditions that concern the rule, in the order in which they
// explain why it is not ready.
func (f *Facts) findings() []finding {
	if f.Removed {
		return []finding{f.synced()}
	}
	all := []finding{f.configurationValid(), f.sourceFound()}
	if f.Suspended {
		all = append([]finding{found(Suspended, metav1.ConditionTrue, Suspended, "nothing is written for the rule while it says suspend: true; it still protects", needsPerson)}, all...)
	}
	if f.Clones != nil {
		all = append(all, f.synced())
	}
	if f.Delivery != nil {
		all = append(all, f.delivered())
	}
	if f.Protection != nil {
		all = append(all, f.protected())
	}
	if f.Reloads {
		all = append(all, f.reloaded())
	}
	return all
}

func (f *Facts) configurationValid() finding {
	if f.Refused.Reason != "" {
		return found(ConfigurationValid, metav1.ConditionFalse, f.Refused.Reason, f.Refused.Message, needsPerson)
	}
	if f.NotCompared {
		return found(ConfigurationValid, metav1.ConditionTrue, NotCompared, "the configuration is in force; at the start no earlier one was recorded that this "+
			"version can read, so nobody knows whether it removes rules", fine)
	}
	return found(ConfigurationValid, metav1.ConditionTrue, "Valid", "the configuration is in force", fine)
}

func (f *Facts) sourceFound() finding {
	if f.CannotRead != nil {
		return cannotRead(SourceFound, f.CannotRead, "no clone of the rule is written or deleted meanwhile, since what Headwater has of them may be old")
	}
	if f.Missing != "" {
		return found(SourceFound, metav1.ConditionFalse, "SourceMissing", f.Missing, stuck)
	}
	return found(SourceFound, metav1.ConditionTrue, "Found", plural.Of(f.Sources.Total-f.Sources.Missing, "source")+" found", fine)
}

// CannotRead is the reason of a condition that is not known, because the API server does not let
// Headwater read what it is about, and that of the Event about it.
const CannotRead = "CannotRead"

func cannotRead(condition string, loss *kube.Loss, meanwhile string) finding {
	return found(condition, metav1.ConditionUnknown, CannotRead, fmt.Sprintf("Headwater cannot read %s; %s", loss, meanwhile), needsPerson)
}

// reading is the reason of a condition that this process cannot know yet.
const reading = "Reading"

func (f *Facts) synced() finding {
	if f.Unread {
		return found(Synced, metav1.ConditionUnknown, reading, "the leader has not read the clones yet since it began", progressing)
	}
	c := f.Clones
	message, retained := f.summary(), c.counts[survey.Retained]
	tolerated := c.areTolerated(f.Tolerates)
	for _, status := range attention {
		if c.counts[status] == 0 || tolerated {
			continue
		}
		urgency := needsPerson
		if status == survey.Failed {
			urgency = stuck
		}
		return found(Synced, metav1.ConditionFalse, reasons[status], message, urgency)
	}
	if c.moving() > 0 {
		return found(Synced, metav1.ConditionFalse, "Progressing", message, progressing)
	}
	if f.Removed && retained > 0 {
		return found(Synced, metav1.ConditionTrue, "Retained", fmt.Sprintf("the configuration no longer has the rule; %s retained: "+
			"`headwater release` removes Headwater's marks from them, `headwater prune` deletes them", plural.Of(retained, "clone")), fine)
	}
	return f.isSynced(tolerated, message)
}

// isSynced says why nothing is to be done.
func (f *Facts) isSynced(tolerated bool, message string) finding {
	switch c := f.Clones; {
	case tolerated:
		return found(Synced, metav1.ConditionTrue, "Tolerated", message+"; sync.maxNotReady tolerates it", fine)
	case c.terminating > 0:
		return found(Synced, metav1.ConditionTrue, "Terminating", message, fine)
	case f.Expired != "" && !f.Suspended:
		return found(Synced, metav1.ConditionTrue, "Expired", message+"; it is still cloned, although "+f.Expired, fine)
	case c.waiting > 0:
		return found(Synced, metav1.ConditionTrue, "RemovalsWait", message, fine)
	case c.total() == 0 && f.Missing == "":
		return found(Synced, metav1.ConditionTrue, "NoNamespaces", "nothing is cloned: the cluster has none of the rule's sync.namespaces", fine)
	}
	return found(Synced, metav1.ConditionTrue, "InSync", message, fine)
}

// summary says how many clones are in which state.
func (f *Facts) summary() string {
	c := f.Clones
	message := fmt.Sprintf("%d of %s in sync", c.counts[survey.Current], plural.Of(c.total(), "clone"))
	var states []string
	for _, status := range survey.Statuses {
		count := c.counts[status]
		if status == survey.Removing {
			count -= c.waiting
		}
		if count > 0 && !status.IsFine() {
			states = append(states, fmt.Sprintf("%d %s", count, status))
		}
	}
	if len(states) > 0 {
		message += ": " + strings.Join(states, ", ")
	}
	if c.terminating > 0 {
		message += fmt.Sprintf("; a finalizer keeps %s after the deletion", plural.Of(c.terminating, "clone"))
	}
	if c.waiting > 0 {
		message += fmt.Sprintf("; %s no longer wanted: deleted from %s on, or at once after `headwater approve`", plural.Of(c.waiting, "clone"), c.nextRemoval.UTC().Format(time.RFC3339))
	}
	if retained := c.counts[survey.Retained]; retained > 0 {
		message += fmt.Sprintf("; %d retained", retained)
	}
	return message
}

// reasons are those of the condition Synced, by the worst state of a clone.
var reasons = map[survey.Status]string{
	survey.Failed: "Failed", survey.Conflicting: "Conflict", survey.Refused: "Refused", survey.Held: "Held", survey.Fighting: "Fighting",
}

func (f *Facts) delivered() finding {
	d := f.Delivery
	message := fmt.Sprintf("%s, revision %d", d.Source, d.Revision)
	if d.Stage != "" {
		message += fmt.Sprintf(", stage %s (%d of %d)", d.Stage, d.Number, d.Stages)
	}
	if d.Message != "" {
		message += ": " + d.Message
	}
	switch d.State {
	case DeliveryDelivered:
		return found(Delivered, metav1.ConditionTrue, d.State, message, fine)
	case DeliveryDelivering, DeliveryAwaitingApproval, DeliveryNoEvidence, DeliveryPaused:
		return found(Delivered, metav1.ConditionFalse, d.State, message, progressing)
	case DeliveryRecording:
		return found(Delivered, metav1.ConditionUnknown, d.State, d.Source+": not recorded yet", progressing)
	default:
		return found(Delivered, metav1.ConditionFalse, d.State, message, needsPerson)
	}
}

func (f *Facts) protected() finding {
	p := f.Protection
	switch {
	case p.Mode != enforce:
		return found(Protected, metav1.ConditionFalse, p.Mode, "the rule denies nothing: its mode is "+p.Mode, fine)
	case f.Missing != "":
		return found(Protected, metav1.ConditionUnknown, protectionUnknown, "not tried, because no source exists", fine)
	case !p.Known:
		return found(Protected, metav1.ConditionUnknown, protectionUnknown, "not tried yet", progressing)
	case p.Verified:
		return found(Protected, metav1.ConditionTrue, protectionVerified, "the API server denies what the rule forbids", fine)
	default:
		return found(Protected, metav1.ConditionFalse, protectionNotVerified, p.Why, needsPerson)
	}
}

// reloaded says which restarts wait, and which rollouts do not complete. They do not keep the
// rule from being ready: a window may open in days, and what breaks one workload is for its
// owner to mend.
func (f *Facts) reloaded() finding {
	if f.CannotReadConsumers != nil {
		return cannotRead(Reloaded, f.CannotReadConsumers, "what changed of them since is not known")
	}
	reason, total := "NothingWaits", 0
	var whys []string
	for _, wait := range f.Waits {
		total += wait.Consumers
		if wait.Held {
			reason = "Held"
		} else if reason != "Held" {
			reason = "Waiting"
		}
		whys = append(whys, fmt.Sprintf("%d because %s (%s)", wait.Consumers, wait.Why, wait.First))
	}
	var parts []string
	if total > 0 {
		parts = append(parts, fmt.Sprintf("%s waiting: %s", plural.Of(total, "restart"), strings.Join(whys, "; ")))
	}
	if stuck := f.stuckRollouts(); stuck != "" {
		reason, parts = rolloutStuck, append([]string{stuck}, parts...)
	}
	if len(parts) == 0 {
		return found(Reloaded, metav1.ConditionTrue, reason, "no restart waits", fine)
	}
	return found(Reloaded, metav1.ConditionFalse, reason, strings.Join(parts, "; "), fine)
}

// rolloutStuck is the reason of Reloaded, and that of the Event on each workload.
const rolloutStuck = "RolloutStuck"

// stuckRollouts says which rollouts do not complete; empty if none is known.
func (f *Facts) stuckRollouts() string {
	total := 0
	var whys []string
	for _, stuck := range f.Stuck {
		total += stuck.Consumers
		first := stuck.First
		if stuck.Pod != "" {
			first += ", pod " + stuck.Pod
		}
		whys = append(whys, fmt.Sprintf("%d %s (%s)", stuck.Consumers, stuck.Reason, first))
	}
	if total == 0 {
		return ""
	}
	return fmt.Sprintf("%s stuck: %s", plural.Of(total, "rollout"), strings.Join(whys, "; "))
}
