package health

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Consumer is what is known of one consumer of a clone: a workload that is restarted
// or whose pods are refreshed, or a pod without a workload.
type Consumer struct {
	// Name is the kind and name. The namespace is that of the clone.
	Name string
	// Waits is why the consumer does not run the content of the clone yet, in names
	// only; empty if it does, or needs nothing.
	Waits string
	// Workload is nil for a pod without one.
	Workload *workload.Workload
	// RestartedAt is when Headwater last restarted the workload; zero if never.
	RestartedAt time.Time
	// Pods are those of the workload. Refreshed are those whose volumes show the
	// clone without a restart.
	Pods, Refreshed []*workload.Pod
	// FailedBefore is true if the consumer is known to have failed before the clone
	// was written. Blamed is true if an earlier revision that was not delivered may have
	// broken it, which excuses nothing.
	FailedBefore, Blamed bool
}

const (
	// reasonNotReady: a refreshed pod lost its readiness.
	reasonNotReady = "NotReady"
	// reasonRestarted: a container of a refreshed pod ended and was restarted.
	reasonRestarted = "Restarted"
)

// found is the health of one consumer. failedBefore is true if it fails, but did so
// before the clone was written.
type found struct {
	name, reason string
	health       mark.ConsumersHealth
	failedBefore bool
}

// JudgeConsumers returns the report on the consumers of a clone that was written at
// writtenAt with the content of revision. again is when passing time may change it;
// zero if it does not.
//
// A consumer that failed before the clone was written does not count, and the report
// names it.
func JudgeConsumers(revision int, consumers []Consumer, writtenAt, now time.Time) (report mark.ConsumersReport, again time.Time) {
	all := make([]found, 0, len(consumers))
	for _, one := range consumers {
		is, due := one.judge(writtenAt, now)
		all = append(all, is)
		if !due.IsZero() && (again.IsZero() || due.Before(again)) {
			again = due
		}
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Compare(a.name, b.name) })
	report = mark.ConsumersReport{Revision: revision, Health: worst(all)}
	report.Reason = reasonOf(report.Health, all)
	return report, again
}

// judge returns the health of c since the clone was written.
func (c Consumer) judge(writtenAt, now time.Time) (is found, again time.Time) {
	is = found{name: c.Name, health: mark.ConsumersHealthy}
	restarted := !c.RestartedAt.Before(writtenAt)
	rollout := c.rollout(writtenAt, now)
	// The deadline of a rollout that Headwater did not start says nothing about the
	// clone. A failing new pod does, because it read the clone.
	stuck := (rollout.Health == Stuck || rollout.FailedBefore) && (restarted || rollout.Pod != "")
	lost, reason, due := c.lostPod(writtenAt, now)
	switch {
	case stuck:
		is.health, is.reason, again = mark.ConsumersUnhealthy, named(string(rollout.Reason), rollout.Pod), rollout.Again
	case lost != "":
		is.health, is.reason, again = mark.ConsumersUnhealthy, named(reason, lost), due
	case c.Waits != "":
		is.health, is.reason = mark.ConsumersPending, c.Waits
	case restarted && rollout.Health == Progressing:
		is.health, is.reason, again = mark.ConsumersPending, "rollout in progress", rollout.Again
		if kept := keptBy(c.Workload, rollout); kept != "" {
			is.reason += " (" + string(kept) + ")"
		}
	}
	if is.health != mark.ConsumersHealthy && c.failedBefore(writtenAt) {
		is.health, is.failedBefore = mark.ConsumersHealthy, true
	}
	return is, again
}

// rollout judges the rollout since the clone was written, or since the later restart
// for it.
func (c Consumer) rollout(writtenAt, now time.Time) RolloutHealth {
	if c.Workload == nil || c.Workload.Kind == kinds.KindCronJob || c.Workload.IsTarget() {
		return RolloutHealth{Health: Healthy}
	}
	began := writtenAt
	if c.RestartedAt.After(began) {
		began = c.RestartedAt
	}
	return JudgeRollout(c.Workload, c.Pods, began, now)
}

// lostPod returns the first refreshed pod, by name, that was restarted or is not ready
// since the clone was written; empty if there is none. again is when a restarted pod
// counts as recovered.
func (c Consumer) lostPod(writtenAt, now time.Time) (name, reason string, again time.Time) {
	since := writtenAt.Unix()
	for _, pod := range c.Refreshed {
		if !pod.Running() || !pod.BoundAt.Before(writtenAt) || name != "" && name < pod.Name {
			continue
		}
		crashed := pod.Crashes > 0 && int64(pod.CrashedAt) >= since
		switch {
		case crashed && pod.Trouble != 0:
			name, reason, again = pod.Name, string(pod.Trouble.Reason()), time.Time{}
		case int64(pod.NotReadySince) >= since:
			name, reason, again = pod.Name, reasonNotReady, time.Time{}
		case crashed && now.Before(pod.Recovers()):
			name, reason, again = pod.Name, reasonRestarted, pod.Recovers()
		}
	}
	return name, reason, again
}

// failedBefore reports whether c is known to have failed before the clone was written.
func (c Consumer) failedBefore(writtenAt time.Time) bool {
	return c.FailedBefore || !c.Blamed && c.unavailableSince(time.Time{}, writtenAt)
}

// FailsNow returns the names of those consumers, except blamed, that have a failing pod
// from before the clone was written. Call it right after the write, before the clone can
// have made a pod fail.
func FailsNow(consumers []Consumer, blamed []string, writtenAt, now time.Time) []string {
	var names []string
	for _, c := range consumers {
		if !slices.Contains(blamed, c.Name) && c.failsSince(time.Time{}, writtenAt, now) {
			names = append(names, c.Name)
		}
	}
	return names
}

// BlamedIn returns the names of those consumers that an earlier revision, which was not
// delivered, may have broken: last, the report on the clone when it was written, gives
// them as a cause, and nothing shows that they fail with delivered content, too. until
// is when the last such revision ended.
func BlamedIn(last mark.ConsumersReport, consumers []Consumer, until, writtenAt, now time.Time) []string {
	causes := strings.Split(last.Reason, separator)
	var names []string
	for _, c := range consumers {
		isCause := slices.ContainsFunc(causes, func(text string) bool { return strings.HasPrefix(text, c.Name+": ") })
		if isCause && !c.failsSince(until, writtenAt, now) && !c.unavailableSince(until, writtenAt) {
			names = append(names, c.Name)
		}
	}
	return names
}

// failsSince reports whether a pod fails that was bound at since or later, but before
// the clone was written.
func (c Consumer) failsSince(since, writtenAt, now time.Time) bool {
	old, _ := splitByRestart(slices.Concat(c.Pods, c.Refreshed), writtenAt)
	return slices.ContainsFunc(old, func(pod *workload.Pod) bool {
		return !pod.BoundAt.Before(since.Truncate(time.Second)) && pod.Failing(now) != ""
	})
}

// unavailableSince reports whether the workload became unavailable at since or later,
// but before the clone was written.
func (c Consumer) unavailableSince(since, writtenAt time.Time) bool {
	if c.Workload == nil || c.Workload.Rollout == nil || c.Workload.Rollout.UnavailableAt == 0 {
		return false
	}
	at := c.Workload.Rollout.UnavailableAt
	return at >= since.Unix() && at < writtenAt.Unix()
}

func named(reason, pod string) string {
	if pod == "" {
		return reason
	}
	return reason + " (pod " + pod + ")"
}

func worst(all []found) mark.ConsumersHealth {
	for _, health := range []mark.ConsumersHealth{mark.ConsumersUnhealthy, mark.ConsumersPending} {
		if slices.ContainsFunc(all, func(f found) bool { return f.health == health }) {
			return health
		}
	}
	return mark.ConsumersHealthy
}

const (
	// maxNamedConsumers bounds how many consumers a report names for each cause.
	maxNamedConsumers = 5
	separator         = "; "
	failedBeforeText  = " failed before"
)

// reasonOf names the consumers that health is because of, and those that failed before.
func reasonOf(health mark.ConsumersHealth, all []found) string {
	var causes, before []string
	for _, f := range all {
		switch {
		case f.failedBefore:
			before = append(before, f.name+failedBeforeText)
		case f.health == health && f.reason != "":
			causes = append(causes, f.name+": "+f.reason)
		}
	}
	return strings.Join(append(bounded(causes), bounded(before)...), separator)
}

func bounded(texts []string) []string {
	if more := len(texts) - maxNamedConsumers; more > 0 {
		return append(texts[:maxNamedConsumers:maxNamedConsumers], "and "+strconv.Itoa(more)+" more")
	}
	return texts
}

// FailedBeforeIn returns the consumers that a report says failed before.
func FailedBeforeIn(report mark.ConsumersReport) []string {
	var names []string
	for _, text := range strings.Split(report.Reason, separator) {
		if name, is := strings.CutSuffix(text, failedBeforeText); is {
			names = append(names, name)
		}
	}
	return names
}
