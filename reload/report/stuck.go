package report

import (
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/dedupe"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/gather"
	"github.com/headwater-k8s/headwater/reload/health"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/track"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Rollouts judges the rollouts that Headwater started, and reports the stuck ones. Only
// one goroutine may use it.
type Rollouts struct {
	*Reporter

	Watch    *track.RolloutWatch
	Gatherer func() (*gather.Gatherer, error)
	reported map[decide.Cause]reportedStuck
}

// reportedStuck is the last report about an object, and its time. first is when a
// rollout was first found to be stuck.
type reportedStuck struct {
	note      string
	first, at time.Time
}

// NewRollouts allocates Rollouts that report by r.
func NewRollouts(r *Reporter, gatherer func() (*gather.Gatherer, error)) *Rollouts {
	return &Rollouts{r, track.NewRolloutWatch(r.Metrics.stuck, r.Metrics.becameStuck), gatherer, map[decide.Cause]reportedStuck{}}
}

// Judge judges the rollouts that changed or are due.
func (r *Rollouts) Judge() {
	now := r.Now()
	for k, one := range r.Watch.Take(now) {
		r.judge(k, one, now)
	}
	for cause, note := range r.notes(now) {
		r.emitOn(cause.Object, events.Event{Rule: cause.Rule, Warning: true, Persisting: true, Reason: "RolloutStuck", Action: "Reload", Note: note})
	}
}

// judge judges the rollout of k. It stops watching a rollout that has been healthy for
// RolloutTimeout, or that was followed by a change of the pod template by somebody
// else, unless its pod stops that one, too.
func (r *Rollouts) judge(k kinds.Key, one track.Watched, now time.Time) {
	w, found := r.Consumers.Workload(k)
	if !found {
		r.Watch.Forget(k)
		return
	}
	rolls, pods := r.Consumers.EffectiveRollout(w), r.Consumers.PodsOf(w)
	if shown := mark.ParseTime(w.Annotations[mark.RestartedAt]); shown.Equal(one.RestartedAt) && w.Edited() && !health.StandsByRestart(rolls, pods) {
		r.Watch.Forget(k)
		r.Repeats.Clear(k, topicStuck)
		return
	}
	one.Health = health.JudgeRollout(rolls, pods, one.RestartedAt, now)
	one.Due = one.Health.Again
	if one.Health.Health != health.Stuck {
		r.Repeats.Clear(k, topicStuck)
	}
	if one.Health.Health == health.Healthy {
		one.Due = health.LastBound(pods, one.RestartedAt).Add(workload.RolloutTimeout)
		if !one.Due.After(now) {
			r.Watch.Forget(k)
			return
		}
	}
	if one.Health.Health == health.Stuck && one.Causes == nil {
		one.Rule, one.Causes = r.likelyCauses(w, one.RestartedAt)
	}
	if r.Watch.Judged(k, one, now) {
		r.Log.Warn("rollout is stuck", zap.Stringer("consumer", k), zap.String("rule", one.Rule),
			zap.String("reason", string(one.Health.Reason)), zap.String("pod", one.Health.Pod))
	}
	if one.Health.Health == health.Stuck {
		event := rolloutStuck(w, one)
		r.EmitOnce(k, topicStuck, event.Note, event)
	}
}

// likelyCauses returns the objects that changed last before a restart that an earlier
// leader started.
func (r *Rollouts) likelyCauses(w *workload.Workload, restartedAt time.Time) (rule string, causes []decide.Cause) {
	g, err := r.Gatherer()
	if err != nil {
		return "", []decide.Cause{}
	}
	var last []decide.Input
	for _, one := range g.Inputs(r.Consumers.StampedGroup(w), false) {
		switch {
		case !one.Restarts() || one.ChangedAt.After(restartedAt):
		case len(last) == 0 || one.ChangedAt.After(last[0].ChangedAt):
			last = []decide.Input{one}
		case one.ChangedAt.Equal(last[0].ChangedAt):
			last = append(last, one)
		}
	}
	return decide.FirstRule(last), append([]decide.Cause{}, decide.CausesOf(last)...)
}

// notes returns the reports about objects that are due at now: shortly after the first
// workload is stuck, then at most every summaryMaxDelay if the note changed, and every
// dedupe.Interval if not.
func (r *Rollouts) notes(now time.Time) map[decide.Cause]string {
	due, stuck := map[decide.Cause]string{}, r.Watch.Stuck()
	for cause := range r.reported {
		if _, still := stuck[cause]; !still {
			delete(r.reported, cause)
		}
	}
	for cause, of := range stuck {
		last, known := r.reported[cause]
		if !known {
			last.first = now
		}
		note := stuckNote(of)
		wait := summaryMaxDelay
		switch {
		case last.at.IsZero():
			last.at, wait = last.first, summaryQuiet
		case note == last.note:
			wait = dedupe.Interval
		}
		if now.Sub(last.at) >= wait {
			due[cause] = note
			r.reported[cause] = reportedStuck{note, last.first, now}
		} else if !known {
			r.reported[cause] = reportedStuck{first: now}
		}
	}
	return due
}

func rolloutStuck(w *workload.Workload, one track.Watched) events.Event {
	event := about(w)
	event.Rule, event.Warning, event.Persisting, event.Reason, event.Action = one.Rule, true, true, "RolloutStuck", "Restart"
	event.Note = "Headwater restarted it at " + one.RestartedAt.UTC().Format(time.RFC3339)
	if len(one.Causes) > 0 {
		event.Note += ", because this changed: " + SomeOf(causeNames(one.Causes), maxMissing)
	}
	event.Note += ". The rollout does not complete: " + whyStuck(one.Health.Reason)
	if one.Health.Pod != "" {
		event.Note += ", as in pod " + one.Health.Pod
	}
	if one.Health.Reason == workload.StuckStanding {
		event.Note += ". Delete pod " + one.Health.Pod + ": the set replaces no pod before it is ready, whatever its template is (kubernetes/kubernetes#67250)"
	} else {
		event.Note += ". If the change is wrong, undo it: the workload is then restarted again"
	}
	return event
}

func causeNames(causes []decide.Cause) []string {
	names := make([]string, 0, len(causes))
	for _, cause := range causes {
		names = append(names, cause.Object.String())
	}
	return names
}

// whyStuck describes reason for users.
func whyStuck(reason workload.StuckReason) string {
	switch reason {
	case workload.StuckDeadline:
		return "it exceeded its progress deadline (" + string(reason) + ")"
	case workload.StuckNoProgress:
		return "no pod was replaced for " + fmt.Sprint(workload.RolloutTimeout.Minutes()) + " minutes"
	case workload.StuckStanding:
		return "the StatefulSet waits for a pod of an older template that is not ready (" + string(reason) + ")"
	case workload.StuckCrashing, workload.StuckConfig, workload.StuckNotCreated, workload.StuckNotRun, workload.StuckImagePull, workload.StuckInvalidImage:
		return "its new pods fail (" + string(reason) + ")"
	}
	return string(reason)
}

// stuckNote is the note of the Event on the object that changed.
func stuckNote(of track.Stuck) string {
	names := make([]string, 0, MaxNamed)
	for _, k := range of.Workloads[:min(MaxNamed, len(of.Workloads))] {
		names = append(names, k.String())
	}
	note := "1 workload that was restarted for it does not complete its rollout"
	if n := len(of.Workloads); n > 1 {
		note = fmt.Sprintf("%d workloads that were restarted for it do not complete their rollouts", n)
	}
	note += ": " + strings.Join(names, ", ")
	if more := len(of.Workloads) - len(names); more > 0 {
		note += fmt.Sprintf(" and %d more", more)
	}
	note += ". Of the first, " + whyStuck(of.Reason)
	if of.Reason == workload.StuckStanding {
		note += ". Delete its pod " + of.Pod
	}
	return note
}
