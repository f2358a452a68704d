package rulestatus

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Facts are what the leader knows of one rule. They contain names but no value of a
// source.
type Facts struct {
	// ConfigurationRevision is that of the configuration in force.
	ConfigurationRevision string
	// Refused is why the configuration on disk is not in force, or not stored; empty if it
	// is both.
	Refused Refusal
	// NotCompared is true if nobody knows which rules were in force before that
	// configuration.
	NotCompared bool
	// Removed is true if the configuration does not have the rule.
	Removed bool
	// Suspended is true while nothing is written for the rule.
	Suspended bool
	Sources   Sources
	// SourceUID is that of the source; empty if there is none, or more than one.
	SourceUID types.UID
	// CannotRead says what of the rule's sources and clones has not been read for so long that
	// no clone of it is written; nil if all is read.
	CannotRead *kube.Loss
	// Unread is true if this process has not read the clones of the rule yet, so that it knows
	// nothing of them and of deliveries. Clones has none then.
	Unread bool
	// CannotReadConsumers is the same of consumers, if the rule reloads any.
	CannotReadConsumers *kube.Loss
	// Missing is the message about a rule without a source.
	Missing    string
	LastChange time.Time
	// Expired names a source with a certificate that has expired since it was written, and
	// says which; empty if there is none.
	Expired string
	// Clones is nil if the rule does not clone.
	Clones *CloneFacts
	// Tolerates returns in how many of so many namespaces a clone may need attention
	// while the rule is ready; nil means none.
	Tolerates func(namespaces int) int
	// Propagation is the latest one that this process followed to its end; nil if none.
	Propagation *Propagation
	// Protection is nil if the rule does not protect.
	Protection *ProtectionFacts
	// Delivery is nil if the rule has no stages.
	Delivery *DeliveryFacts
	// Waits are the restarts that wait; nil if the rule reloads nothing.
	Waits []Wait
	// Stuck are the rollouts of its restarts that do not complete.
	Stuck []Stuck
	// Reloads is true if the rule reloads consumers.
	Reloads bool
	Held    *Held
	History *History
	// Unjudged are the sources of History whose delivery this process has not judged.
	Unjudged sets.Set[string]
}

// Refusal is why a configuration is not put in force.
type Refusal struct {
	// Reason is one word, such as Invalid or RulesHeld; empty if it is in force.
	Reason, Message string
}

// ProtectionFacts is whether a rule protects its sources.
type ProtectionFacts struct {
	// Mode is Enforce, Warn or Audit.
	Mode string
	// Known is false until this process tried whether changes are denied; Verified is
	// the result, Why the reason if it is false.
	Known, Verified bool
	Why             string
}

// DeliveryFacts is the state of a delivery.
type DeliveryFacts struct {
	Delivery
	// Judged is false until this process knows what the delivery waits for.
	Judged bool
}

// Wait counts the restarts that wait for the same reason.
type Wait struct {
	// Held is true if something is missing, or has no value, that the pods need.
	Held bool
	// Why is the reason in words.
	Why       string
	Consumers int
	// First names the first consumer.
	First string
}

// Stuck are rollouts that do not complete for one reason.
type Stuck struct {
	// Reason is one word, such as CrashLoopBackOff.
	Reason    string
	Consumers int
	// First names the first consumer, and Pod the one of it that fails or is waited for; empty
	// if there is none.
	First, Pod string
}

// CloneFacts counts clones by status and groups those that need attention.
type CloneFacts struct {
	counts   map[survey.Status]int
	problems problems
	// terminating counts clones that are deleted and that a finalizer keeps. Nobody
	// but the owner of the finalizer can do anything about it.
	terminating int
	// waiting counts clones that are no longer wanted and that are deleted later, the first of
	// them at nextRemoval.
	waiting     int
	nextRemoval time.Time
	// inNamespaces has each namespace with a clone, and whether one of its clones needs
	// attention in a way that a rule may tolerate.
	inNamespaces map[string]bool
	// failingSince is when the clone that has failed longest failed first.
	failingSince time.Time
}

// NewCloneFacts returns facts without any clone.
func NewCloneFacts() *CloneFacts {
	return &CloneFacts{counts: map[survey.Status]int{}, problems: problems{}, inNamespaces: map[string]bool{}}
}

// Count counts clones with that status, none of which needs attention.
func (c *CloneFacts) Count(status survey.Status, clones int) { c.counts[status] += clones }

// CountWaiting counts clones that are no longer wanted, and are deleted at a time.
func (c *CloneFacts) CountWaiting(at time.Time, clones int) {
	c.Count(survey.Removing, clones)
	c.waiting += clones
	if c.nextRemoval.IsZero() || at.Before(c.nextRemoval) {
		c.nextRemoval = at
	}
}

// Add counts one clone.
func (c *CloneFacts) Add(f survey.CloneStatus) {
	if f.Waits() {
		c.CountWaiting(f.Decision.Until, 1)
		return
	}
	c.Count(f.Status, 1)
	if f.Status != survey.Retained {
		c.inNamespaces[f.Target.Namespace] = c.inNamespaces[f.Target.Namespace] || isTolerable(f.Status)
	}
	if f.Decision.Reason == plan.CloneTerminating {
		c.terminating++
		c.problems.add(f)
	}
	if !f.NeedsAttention() {
		return
	}
	c.problems.add(f)
	if f.Status == survey.Failed && !f.Since.IsZero() && (c.failingSince.IsZero() || f.Since.Before(c.failingSince)) {
		c.failingSince = f.Since
	}
}

// Empty reports whether there is no clone at all.
func (c *CloneFacts) Empty() bool { return len(c.counts) == 0 }

func (c *CloneFacts) moving() int {
	return c.total() - c.counts[survey.Current] - c.needAttention() - c.terminating
}

// isTolerable reports whether a rule can be ready although a clone has that status.
// What is held waits for somebody who can let it go for the whole rule.
func isTolerable(status survey.Status) bool { return status.NeedsAttention() && status != survey.Held }

// areTolerated reports whether some clones need attention, in no more namespaces than
// tolerates says.
func (c *CloneFacts) areTolerated(tolerates func(namespaces int) int) bool {
	if tolerates == nil || c.counts[survey.Held] > 0 {
		return false
	}
	affected := 0
	for _, is := range c.inNamespaces {
		if is {
			affected++
		}
	}
	return affected > 0 && affected <= tolerates(len(c.inNamespaces))
}

// total returns the number of clones without retained ones, and those that wait to be deleted.
func (c *CloneFacts) total() int {
	total := -c.waiting
	for status, count := range c.counts {
		if status != survey.Retained {
			total += count
		}
	}
	return total
}

func (c *CloneFacts) needAttention() int {
	attention := 0
	for status, count := range c.counts {
		if status.NeedsAttention() {
			attention += count
		}
	}
	return attention
}

func (c *CloneFacts) summary() *Clones {
	clones := &Clones{Total: c.total(), Current: c.counts[survey.Current], NeedAttention: c.needAttention()}
	for status, count := range c.counts {
		if clones.ByState == nil {
			clones.ByState = map[string]int{}
		}
		clones.ByState[string(status)] = count
	}
	if c.waiting > 0 {
		clones.Waiting, clones.NextRemoval = c.waiting, new(metav1.NewTime(c.nextRemoval.UTC().Truncate(time.Second)))
	}
	return clones
}
