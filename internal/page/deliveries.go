package page

import (
	"bytes"
	"time"
)

// Delivery is how far the newest revision of a source came on its way to the
// namespaces. It contains numbers and names, and never a value.
type Delivery struct {
	Rule   string `json:"rule"`
	Source string `json:"source"`
	// Revision is the one under delivery, or the newest one.
	Revision int       `json:"revision"`
	EditedBy string    `json:"editedBy"`
	Recorded time.Time `json:"recorded"`
	// Verdict is Delivering, Held, Delivered, Rejected or Superseded, and Reason why.
	Verdict string `json:"verdict"`
	Reason  string `json:"reason"`
	// Stage is the name of the stage that the delivery has reached; empty if none is
	// under way.
	Stage      string    `json:"stage"`
	StageSince time.Time `json:"stageSince,omitzero"`
	// SoaksUntil is when the stage's gate has held for long enough, and FailsAt when
	// the stage has taken too long; at most one is set. Waits is what the delivery waits
	// for.
	SoaksUntil time.Time `json:"soaksUntil,omitzero"`
	FailsAt    time.Time `json:"failsAt,omitzero"`
	Waits      string    `json:"waits"`
	// Paused and RolledBack name who asked for it, and when.
	Paused     string `json:"paused"`
	RolledBack string `json:"rolledBack"`
	// Wanted is the revision that the namespaces of reached stages are to have, and
	// Stable the last one that passed every stage; 0 if there is none.
	Wanted int `json:"wanted"`
	Stable int `json:"stable"`
	// Gate is what must hold in each stage, in words.
	Gate   string  `json:"gate"`
	Stages []Stage `json:"stages"`
}

// Stage is one stage of a Delivery.
type Stage struct {
	Name string `json:"name"`
	// Namespaces is how many it has, Have how many of them have Delivery.Wanted.
	Namespaces int `json:"namespaces"`
	Have       int `json:"have"`
	// Healthy counts the consumers that have run the revision, Pending those that are waited
	// for, and Unhealthy the namespaces in which one fails, of a stage
	// that the delivery has reached.
	Healthy   int `json:"healthy"`
	Pending   int `json:"pending"`
	Unhealthy int `json:"unhealthy"`
	// Soak is how long the gate must hold, in seconds.
	Soak float64 `json:"soak"`
	// Approval is true if the next stage waits for a person.
	Approval bool `json:"approval"`
}

// Deliveries are those of all rules.
type Deliveries struct {
	All []Delivery `json:"all"`
	// More is how many settled deliveries of a rule are left out, by rule.
	More map[string]int `json:"more,omitempty"`
}

// DeliveryChanged reports that a delivery may have changed.
func (f *Feed) DeliveryChanged() { f.deliveries.Store(true) }

// sendDeliveries sends the deliveries if they differ. They are read only when
// something changed since the last time.
func (b *hub) sendDeliveries(changed bool) {
	if changed = b.feed.deliveries.Swap(false) || changed; !changed {
		return
	}
	told := message("deliveries", b.subject.Deliveries())
	b.mu.Lock()
	defer b.mu.Unlock()
	if !bytes.Equal(told, b.deliveries) {
		b.deliveries = told
		b.sendAll(told)
	}
}
