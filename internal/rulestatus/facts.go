package rulestatus

import (
	"time"

	"github.com/headwater-k8s/headwater/sync/survey"
)

// Facts are what the leader knows of one rule. They contain names but no value of a
// source.
type Facts struct {
	// ConfigurationRevision is that of the configuration in force.
	ConfigurationRevision string
	// InvalidAt says where the configuration on disk is not valid; empty if it is.
	InvalidAt string
	// Removed is true if the configuration does not have the rule.
	Removed bool
	Sources Sources
	// Missing is the message about a rule without a source.
	Missing    string
	LastChange time.Time
	// Clones is nil if the rule does not clone.
	Clones *CloneFacts
	// Propagation is the latest one that this process followed to its end; nil if none.
	Propagation *Propagation
	// Protection is nil if the rule does not protect.
	Protection *ProtectionFacts
	// Delivery is nil if the rule has no stages.
	Delivery *DeliveryFacts
	// Waits are the restarts that wait; nil if the rule reloads nothing.
	Waits []Wait
	// Reloads is true if the rule reloads consumers.
	Reloads bool
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
	// Held is true if something is missing without which the pods could not start.
	Held bool
	// Why is the reason in words.
	Why       string
	Consumers int
	// First names the first consumer.
	First string
}

// CloneFacts counts clones by status and groups those that need attention.
type CloneFacts struct {
	counts   map[survey.Status]int
	problems problems
	// failingSince is when the clone that has failed longest failed first.
	failingSince time.Time
}

// NewCloneFacts returns facts without any clone.
func NewCloneFacts() *CloneFacts {
	return &CloneFacts{counts: map[survey.Status]int{}, problems: problems{}}
}

// Counted returns the facts of so many clones by status; nil if some of them need
// attention, because what is wrong with those must be known, too.
func Counted(clones map[survey.Status]int) *CloneFacts {
	for status := range clones {
		if status.NeedsAttention() {
			return nil
		}
	}
	return &CloneFacts{counts: clones, problems: problems{}}
}

// Add counts one clone.
func (c *CloneFacts) Add(f survey.CloneStatus) {
	c.counts[f.Status]++
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

// IsMoving reports whether Headwater is about to write a clone.
func (c *CloneFacts) IsMoving() bool { return c.moving() > 0 }

func (c *CloneFacts) moving() int {
	return c.total() - c.counts[survey.Current] - c.needAttention()
}

// total returns the number of clones without retained ones.
func (c *CloneFacts) total() int {
	total := 0
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
	return clones
}
