package decide

import (
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/dedupe"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Wait is why a restart does not start now.
type Wait struct {
	// Reason is empty if the restart can start.
	Reason WaitReason
	// Until is when to reconcile again; zero if an event has to happen first.
	Until time.Time
	// By says who reverts the restart, for WaitReverted.
	By Reverter
}

// Reverter is what is known of who reverts a restart.
type Reverter struct {
	// Owner controls the workload, as Kind/name. It is empty if the schema of the
	// workload's own kind drops the stamp.
	Owner string `json:"owner,omitempty"`
	// Declare is the topmost known kind above the workload that holds no pod template, as
	// far as Headwater knows; empty if there is none. Unread is true if Headwater cannot
	// read that kind, so that there may be others above.
	Declare kinds.Kind `json:"declare,omitempty"`
	Unread  bool       `json:"unread,omitempty"`
}

// String says for users who reverts the restart, and what happens next.
func (r Reverter) String() string {
	by, kind := "the schema of its kind, which must keep annotations of the pod template", string(r.Declare)
	if r.Owner != "" {
		by = "its owner " + r.Owner
	}
	text := "the annotations of its restart were removed, most likely by " + by + "; it is restarted again when the data changes next"
	switch {
	case r.Unread:
		text += "; to restart its topmost owner with a pod template instead, add that kind to reload.workloads, and let Headwater list and watch " + kind
	case kind != "":
		text += "; to restart its owner instead, add " + kind + " to reload.workloads, with the path of its pod template or of its pods' annotations"
	}
	return text
}

// RequeueAfter returns how long after now to reconcile again. Conditions that need
// attention are reported again after dedupe.Interval. It is negative if an event has to
// happen first.
func (w Wait) RequeueAfter(now time.Time) time.Duration {
	switch {
	case w.Reason == WaitMissing, w.Reason == WaitReverted:
		return dedupe.Interval
	case w.Until.IsZero():
		return -1
	case w.Reason == WaitBreaker:
		return max(0, min(w.Until.Sub(now), dedupe.Interval))
	default:
		return max(0, w.Until.Sub(now))
	}
}

// WaitReason is the label value of the metric headwater_reload_waiting.
type WaitReason string

// The reasons to wait.
const (
	// WaitDebounce: the data was written so recently that more changes may follow.
	WaitDebounce WaitReason = "debounce"
	// WaitOwner: a rollout in progress, which Headwater did not start, may deliver the
	// change to every pod.
	WaitOwner WaitReason = "owner"
	// WaitWindow: no window is open.
	WaitWindow WaitReason = "window"
	// WaitBreaker: the workload reached its limit of restarts per hour.
	WaitBreaker WaitReason = "breaker"
	// WaitInterval: the workload was restarted too recently.
	WaitInterval WaitReason = "interval"
	// WaitRollouts: too many other rollouts are in progress.
	WaitRollouts WaitReason = "rollouts"
	// WaitMissing: its pods could not start without the missing objects or keys, or would read
	// no value of a changed object.
	WaitMissing WaitReason = "missing"
	// WaitReverted: its owner, or the schema of its kind, reverted this restart already.
	WaitReverted WaitReason = "reverted"
)

// IsOwnPace reports whether nothing but Headwater's own limits delays a restart.
func (r WaitReason) IsOwnPace() bool {
	return r == WaitDebounce || r == WaitWindow || r == WaitBreaker || r == WaitInterval || r == WaitRollouts
}

// WaitReasons returns every WaitReason, in the order in which a restart checks them.
func WaitReasons() []WaitReason {
	return []WaitReason{WaitDebounce, WaitOwner, WaitWindow, WaitBreaker, WaitInterval, WaitRollouts, WaitMissing, WaitReverted}
}

// startChecks decide when a restart starts, in this order: the first that applies wins.
// A restart that none of them delays starts now.
var startChecks = []func(s *State, due Decision) (d Decision, applies bool){
	dataUnread, changesMayFollow, writtenRecently, podsWouldFail, stampReplacesNoPod, alreadyDelivered, mayBeDelivered, podsWouldReadNothing, ownerReverts, outsideWindow, tooSoon, othersRollOut,
}

// start completes a due restart: it starts now, is unnecessary, or waits.
func (s *State) start(due Decision) Decision {
	if due.Step != spec.StepRestart && due.Step != spec.StepHold {
		return due
	}
	for _, check := range startChecks {
		if d, applies := check(s, due); applies {
			return d
		}
	}
	return due
}

// NeedsRoom reports whether d starts a rollout that counts towards the limits on
// concurrent ones.
func (s *State) NeedsRoom(d Decision) bool {
	return d.Step == spec.StepRestart && !d.Waits() && s.Rollout.ReplacesPods()
}

// GoesFirst reports whether the restart goes before others that wait for room: the workload
// fails with a revision that is taken back.
func (s *State) GoesFirst(d Decision) bool {
	return d.IsUrgent() && slices.ContainsFunc(s.Pods, func(pod *workload.Pod) bool { return pod.Trouble != 0 })
}

func (d Decision) waiting(reason WaitReason, until time.Time) Decision {
	d.Wait = Wait{Reason: reason, Until: until}
	return d
}

// dataUnread: pods may not start without what has not been read yet, and it may have changed
// as well.
func dataUnread(s *State, due Decision) (d Decision, applies bool) {
	unread := func(c Input) bool { return c.WantsRead() && !c.Exists && !c.Absent }
	return Decision{Step: spec.StepNothing, Reason: spec.ReasonDataUnread, Rule: due.Rule, Incomplete: true}, slices.ContainsFunc(s.Inputs, unread)
}

func changesMayFollow(s *State, due Decision) (d Decision, applies bool) {
	due.Settling, due.Wait.Until = true, s.Known.Debounced
	return due, s.Known.Debounced.After(s.Now)
}

// writtenRecently counts from the last write, also for a leader that did not see it. Only
// the longest wait counts from when this leader began to wait.
func writtenRecently(s *State, due Decision) (d Decision, applies bool) {
	quiet, began := due.Pace.Quiet, s.Now
	if s.Known.Waits == WaitDebounce {
		began = s.Known.WaitsSince
	}
	until := due.Data.At.Add(quiet)
	if due.Data.At.IsZero() {
		until = began.Add(quiet)
	}
	if last := began.Add(2 * quiet); until.After(last) {
		until = last
	}
	return due.waiting(WaitDebounce, until), quiet > 0 && until.After(s.Now) && !due.IsUrgent()
}

func podsWouldFail(_ *State, due Decision) (d Decision, applies bool) {
	return due.waiting(WaitMissing, time.Time{}), due.Step == spec.StepHold
}

// stampReplacesNoPod: the pods end by themselves.
func stampReplacesNoPod(s *State, due Decision) (d Decision, applies bool) {
	return due, s.Workload.Info().RunsToCompletion
}

func alreadyDelivered(s *State, due Decision) (d Decision, applies bool) {
	return due.delivered(), s.coverage(due) == Delivered
}

func mayBeDelivered(s *State, due Decision) (d Decision, applies bool) {
	return due.waiting(WaitOwner, due.Data.At.Add(workload.RolloutTimeout)), s.coverage(due) == InProgress
}

// podsWouldReadNothing: their owner has to say so by a rollout of theirs.
func podsWouldReadNothing(_ *State, due Decision) (d Decision, applies bool) {
	due.Step, due.Reason, due.Changed = spec.StepHold, spec.ReasonEmptied, nil
	for _, name := range due.Emptied {
		due.Missing = append(due.Missing, "every value of "+name)
	}
	return due.waiting(WaitMissing, time.Time{}), len(due.Emptied) > 0 && !due.IsUrgent()
}

// ownerReverts: the same restart would be reverted again.
func ownerReverts(s *State, due Decision) (d Decision, applies bool) {
	if due.Undone != UndoneByOwner || due.Baseline != s.Known.Record.Baseline {
		return due, false
	}
	due.Wait = Wait{Reason: WaitReverted, By: RevertedBy(s)}
	return due, true
}

// RevertedBy says who reverts restarts of the workload, if anybody does.
func RevertedBy(s *State) Reverter {
	by := Reverter{Unread: s.Owner.Unread}
	if s.Workload.Owner != nil {
		by.Owner = s.Workload.Owner.String()
	}
	if above := s.Owner.Unsupported; above != nil {
		by.Declare = above.Kind
	}
	return by
}

func outsideWindow(s *State, due Decision) (d Decision, applies bool) {
	opens := spec.AllOpen(append([]spec.Windows{s.Windows}, due.Pace.Windows...), s.Now)
	return due.waiting(WaitWindow, opens), !opens.IsZero() && !due.IsUrgent()
}

func tooSoon(s *State, due Decision) (d Decision, applies bool) {
	due.Wait = waitFor(due.Pace, s.Known.Restarts, s.Now)
	return due, due.Waits() && !due.IsUrgent()
}

func othersRollOut(s *State, due Decision) (d Decision, applies bool) {
	return due.waiting(WaitRollouts, time.Time{}), s.Full && s.NeedsRoom(due)
}

// paceOf returns the strictest pace of the rules of the changed objects.
func paceOf(changed []Input) spec.Pace {
	var pace spec.Pace
	for _, c := range changed {
		pace = pace.And(c.Pace)
	}
	return pace
}

// waitFor returns how pace p delays another restart after the earlier ones.
func waitFor(p spec.Pace, restarts mark.Restarts, now time.Time) Wait {
	restarts = dropFuture(restarts, now)
	if len(restarts) == 0 {
		return Wait{}
	}
	lately := restarts.Since(now.Add(-mark.RestartsKept))
	if p.PerHour > 0 && len(lately) >= p.PerHour {
		return Wait{Reason: WaitBreaker, Until: lately[len(lately)-p.PerHour].Add(mark.RestartsKept)}
	}
	if free := restarts.Last().Add(max(p.IntervalAfter(len(lately)), p.AfterUndo)); free.After(now) {
		return Wait{Reason: WaitInterval, Until: free}
	}
	return Wait{}
}

// dropFuture drops restarts that another clock dated after now, so that they do not block a
// workload.
func dropFuture(restarts mark.Restarts, now time.Time) mark.Restarts {
	for len(restarts) > 0 && restarts[len(restarts)-1].After(now) {
		restarts = restarts[:len(restarts)-1]
	}
	return restarts
}

// Written is when data was last written.
type Written struct {
	// At is the API server's time in whole seconds; zero means unknown. It can be too
	// early if the last write only removed keys, because the API server records the
	// time of a write only if it takes over fields. Clones carry the correct time, see
	// mark.SourceVersion. For other objects Headwater detects such a write if it read
	// both versions, and then the time is unknown.
	At time.Time
	// Version is the resourceVersion; empty means unknown.
	Version string
}

// writtenOf returns the latest write of the changed objects; zero if one of them is
// unknown.
func writtenOf(changed []Input) Written {
	var last Written
	for _, c := range changed {
		if c.ChangedAt.IsZero() || c.Version == "" {
			return Written{}
		}
		if c.ChangedAt.After(last.At) {
			last.At = c.ChangedAt
		}
		if last.Version == "" || object.NewerThan(c.Version, last.Version) {
			last.Version = c.Version
		}
	}
	return last
}

// RolloutCoverage says whether a rollout that Headwater did not start delivers a
// change.
type RolloutCoverage string

// The coverages.
const (
	// Delivered: every pod started after the change.
	Delivered RolloutCoverage = "Delivered"
	// InProgress: the rollout may still deliver the change to every pod.
	InProgress RolloutCoverage = "Underway"
	// Undelivered: at least one pod remains that started before the change.
	Undelivered RolloutCoverage = "Undelivered"
)

// CoverageOf says whether rollout r already delivers data that changed together with
// the pod template, for example in one helm upgrade. A second rollout would then be
// useless, but missing a change would be worse. So coverage is Delivered only if the
// rollout is complete and every pod was bound to its node
//
//   - in a later second than the data was written, by the API server's clock, or
//   - in the same second, if Headwater saw that the pod template was written, at
//     templateVersion, after the data.
//
// Any pod that does not meet this makes it Undelivered. The kubelet sees a pod only
// after it is bound, and mounts volumes before it starts containers, so a pod that was
// bound after the write reads the new data. Comparing resourceVersions across resources
// is valid if the API server stores them in one etcd. Otherwise the error is below one
// second.
//
// If the data differs from the baseline but was not written after recordedAt, the API
// server did not record the time of the write. Coverage is then Undelivered.
//
// Coverage is InProgress for at most workload.RolloutTimeout, while all older pods can
// belong to the pod template that is being replaced. If the status has come without them,
// and enough others are younger, their removal has not been seen yet.
func CoverageOf(r *workload.Rollout, pods []*workload.Pod, data Written, recordedAt time.Time, templateVersion string, now time.Time) RolloutCoverage {
	if data.At.IsZero() || !data.At.After(recordedAt) || !replacesAll(r) {
		return Undelivered
	}
	before, after := data.split(pods, object.NewerThan(templateVersion, data.Version))
	switch {
	case r.Complete() && before == 0 && after >= r.Replicas:
		return Delivered
	case r.Complete() && after < r.Replicas, now.Sub(data.At) > workload.RolloutTimeout:
		return Undelivered
	case r.Observed < r.Generation || before <= r.Old || r.Complete():
		return InProgress
	default:
		return Undelivered
	}
}

// replacesAll reports whether the rollout replaces every pod, as far as its status says.
func replacesAll(r *workload.Rollout) bool {
	return r.ReplacesPods() && !r.Stalled && r.Partitioned == 0
}

// split counts the pods that were bound before and after the data was written. proven
// says that pods bound in the same second count as after. Terminating pods do not
// count.
func (data Written) split(pods []*workload.Pod, proven bool) (before, after int32) {
	for _, pod := range pods {
		bound := pod.BoundAt.Truncate(time.Second)
		switch {
		case pod.DeletionTimestamp != nil:
		case bound.After(data.At), bound.Equal(data.At) && proven:
			after++
		default:
			before++
		}
	}
	return before, after
}
