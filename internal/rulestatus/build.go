package rulestatus

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// patience is how long a source may be missing, or a write may fail, until the rule
// counts as stalled: until then it may become right by itself.
const patience = time.Minute

// Build returns the status of a rule at now. before is the status as it is stored;
// times in it stay as they are while what they are about does, and so does what this
// process cannot know yet. The result depends on now only where something changes.
// again is when time alone changes the result; zero if it does not.
func Build(f *Facts, before *Status, now time.Time) (status Status, again time.Duration) {
	now = now.UTC().Truncate(time.Second)
	f.recall(before)
	status = Status{ConfigurationRevision: f.ConfigurationRevision, Removed: f.Removed, LastPropagation: before.LastPropagation, Held: f.Held, History: f.History}
	if f.Propagation != nil {
		status.LastPropagation = f.Propagation
	}
	if !f.Removed {
		status.Sources = &f.Sources
	}
	if f.Delivery != nil {
		status.Delivery = &f.Delivery.Delivery
	}
	if !f.LastChange.IsZero() {
		status.LastChange = &metav1.Time{Time: f.LastChange.UTC().Truncate(time.Second)}
	}
	f.countClones(&status, before)
	all := f.findings()
	if last := before.Condition(Delivered); f.Unread && last != nil {
		all = append(all, finding{*last, fine})
	}
	if f.Protection != nil && !f.Removed {
		status.Protection = protectionOf(all)
	}
	again = f.outlast(all, before, now)
	for _, one := range append(summarized(all, f), all...) {
		status.Conditions = append(status.Conditions, dated(one.Condition, before, now))
	}
	return status, again
}

// SaysNothing reports whether f is no reason to write a status: what is not known yet may be known
// soon, and before that nobody knows whether a removed rule has clones.
func (f *Facts) SaysNothing() bool { return f.Unread && (f.Removed || f.CannotRead == nil) }

// countClones says of the clones what this process knows, or before what it has read them what
// was known last of them, of sources and of deliveries.
func (f *Facts) countClones(status, before *Status) {
	switch {
	case f.Unread:
		status.Held, status.History, status.Delivery = before.Held, before.History, before.Delivery
		status.Sources, status.LastChange = before.Sources, before.LastChange
		if f.Clones != nil {
			status.Clones, status.Problems, status.MoreProblems = before.Clones, before.Problems, before.MoreProblems
		}
	case f.Clones != nil:
		status.Clones = f.Clones.summary()
		status.Problems, status.MoreProblems = f.Clones.problems.ranked()
	}
}

func protectionOf(all []finding) string {
	at := slices.IndexFunc(all, func(one finding) bool { return one.Type == Protected })
	return all[at].Reason
}

// recall takes from before what this process cannot know yet: a leader that starts
// has not tried the protection, nor judged the delivery.
func (f *Facts) recall(before *Status) {
	if last := before.Condition(ConfigurationValid); last != nil && last.Reason == NotCompared && before.ConfigurationRevision == f.ConfigurationRevision {
		f.NotCompared = true // another process found out
	}
	f.recallProtection(before.Condition(Protected))
	f.recallDelivery(before.Delivery)
	f.recallHistory(before.History)
}

func (f *Facts) recallProtection(last *metav1.Condition) {
	p := f.Protection
	if p != nil && p.Mode == enforce && !p.Known && last != nil && (last.Reason == protectionVerified || last.Reason == protectionNotVerified) {
		p.Known, p.Verified, p.Why = true, last.Reason == protectionVerified, last.Message
	}
}

func (f *Facts) recallDelivery(known *Delivery) {
	d := f.Delivery
	if d != nil && !d.Judged && d.State == DeliveryDelivering && known != nil &&
		known.Source == d.Source && known.Revision == d.Revision && known.Stage == d.Stage {
		d.State, d.Message = known.State, known.Message
	}
}

// outlast turns a finding that may become right by itself into one that needs a person
// once it has lasted for patience. It returns when the next one does.
func (f *Facts) outlast(all []finding, before *Status, now time.Time) (again time.Duration) {
	for i := range all {
		one := &all[i]
		if one.urgency != stuck {
			continue
		}
		since := now
		if last := before.Condition(one.Type); last != nil && last.Reason == one.Reason {
			since = dated(one.Condition, before, now).LastTransitionTime.Time
		}
		if one.Type == Synced && !f.Clones.failingSince.IsZero() {
			since = f.Clones.failingSince
		}
		left := patience - now.Sub(since)
		switch {
		case left <= 0 || wasStalledBy(before, one.Reason):
			one.urgency = needsPerson
		case again == 0 || left < again:
			one.urgency, again = progressing, left
		default:
			one.urgency = progressing
		}
	}
	return again
}

// wasStalledBy reports whether the rule stalled for that reason: a leader that starts
// does not know since when a write fails.
func wasStalledBy(before *Status, reason string) bool {
	last := before.Condition(Stalled)
	return last != nil && last.Status == metav1.ConditionTrue && last.Reason == reason
}

// summarized returns the condition Ready and, if it is not true, Stalled or Reconciling:
// the first finding that needs a person explains it, or else the first that is not
// fine.
func summarized(all []finding, f *Facts) []finding {
	worst := slices.IndexFunc(all, func(one finding) bool { return one.urgency == needsPerson })
	abnormal := Stalled
	if worst < 0 {
		worst = slices.IndexFunc(all, func(one finding) bool { return one.urgency != fine })
		abnormal = Reconciling
	}
	if worst < 0 {
		message := "sources and clones are as the rule says"
		synced := slices.IndexFunc(all, func(one finding) bool { return one.Type == Synced })
		if f.Removed || synced >= 0 && all[synced].Reason != "InSync" {
			message = all[synced].Message // it names what is not
		}
		return []finding{found(Ready, metav1.ConditionTrue, readyReason(f), message, fine)}
	}
	why := all[worst]
	status := metav1.ConditionFalse
	if why.Reason == CannotRead || why.Reason == reading {
		status = why.Status
	}
	return []finding{
		found(Ready, status, why.Reason, why.Message, fine),
		found(abnormal, metav1.ConditionTrue, why.Reason, why.Message, fine),
	}
}

func readyReason(f *Facts) string {
	if f.Removed {
		return "RuleRemoved"
	}
	return "Ready"
}

// dated sets since when the condition has its status. A time to come is somebody else's.
func dated(condition metav1.Condition, before *Status, now time.Time) metav1.Condition {
	condition.LastTransitionTime = metav1.NewTime(now)
	if last := before.Condition(condition.Type); last != nil && last.Status == condition.Status && !last.LastTransitionTime.After(now) {
		condition.LastTransitionTime = last.LastTransitionTime
	}
	return condition
}
