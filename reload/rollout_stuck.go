package reload

import (
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/mark"
)

// judgeEvery is how much later a rollout may be judged than there is a reason to.
const judgeEvery = time.Second

// watchAgain watches the rollouts that former leaders began.
func (c *controller) watchAgain() {
	for _, w := range c.consumers.allWorkloads() {
		if at := mark.ParseTime(w.Annotations[mark.RestartedAt]); !at.IsZero() {
			c.watchRestart(w, at, "", nil)
		}
	}
}

// watchRestart watches the rollout of a restart, if it is one: a stamp on a
// CronJob, or on an object without a pod template, replaces no pod.
func (c *controller) watchRestart(w *Workload, at time.Time, rule string, causes []Cause) {
	if w.Kind != KindCronJob && !w.isTarget() {
		c.watch.begin(w.key(), at, rule, causes)
	}
}

// judgeRollouts judges the rollouts of which anything has changed, and tells of
// those that are stuck.
func (c *controller) judgeRollouts() {
	now := c.now()
	for k, one := range c.watch.take(now) {
		c.judge(k, one, now)
	}
	for cause, note := range c.watch.notes(now) {
		c.report.tellStuckBecause(cause, note)
	}
}

// judge judges the rollout of k, and ends the watch of one that is healthy for
// long, or that another one of somebody else came after.
func (c *controller) judge(k key, one watched, now time.Time) {
	w, found := c.consumers.workload(k)
	if !found {
		c.watch.forget(k)
		return
	}
	if shown := mark.ParseTime(w.Annotations[mark.RestartedAt]); shown.Equal(one.restartedAt) && w.Edited {
		c.watch.forget(k)
		c.report.told.over(k, stuck)
		return
	}
	pods := c.consumers.podsOf(w)
	one.health = judgeRollout(c.consumers.rolling(w), pods, one.restartedAt, now)
	one.due = one.health.Again
	if one.health.Health != Stuck {
		c.report.told.over(k, stuck)
	}
	if one.health.Health == Healthy {
		one.due = lastBound(pods, one.restartedAt).Add(rolloutPatience)
		if !one.due.After(now) {
			c.watch.forget(k)
			return
		}
	}
	if one.health.Health == Stuck && one.causes == nil {
		one.rule, one.causes = c.likelyCauses(w, one.restartedAt)
	}
	if c.watch.judged(k, one, now) {
		c.log.Warn("rollout is stuck", zap.Stringer("consumer", k), zap.String("rule", one.rule),
			zap.String("reason", string(one.health.Reason)), zap.String("pod", one.health.Pod))
	}
	if one.health.Health == Stuck {
		c.report.tellStuck(w, one)
	}
}

// likelyCauses are the objects that changed last before a restart of w that a
// former leader began.
func (c *controller) likelyCauses(w *Workload, restartedAt time.Time) (rule string, causes []Cause) {
	g, err := c.gatherer()
	if err != nil {
		return "", []Cause{}
	}
	var last []Consumed
	for _, one := range g.family(c.consumers, c.consumers.family(w), c.honoured()) {
		switch {
		case !one.restarts() || one.ChangedAt.After(restartedAt):
		case len(last) == 0 || one.ChangedAt.After(last[0].ChangedAt):
			last = []Consumed{one}
		case one.ChangedAt.Equal(last[0].ChangedAt):
			last = append(last, one)
		}
	}
	return firstRule(last), append([]Cause{}, c.report.origins(causesOf(last))...)
}

// stuck is the topic of tellStuck.
const stuck = "stuck"

func rolloutStuck(w *Workload, one watched) kube.Event {
	event := about(w)
	event.Rule, event.Warning, event.Persisting, event.Reason, event.Action = one.rule, true, true, "RolloutStuck", "Restart"
	event.Note = "Headwater restarted it at " + one.restartedAt.UTC().Format(time.RFC3339)
	if len(one.causes) > 0 {
		event.Note += ", because this changed: " + someOf(causeNames(one.causes), maxMissing)
	}
	event.Note += ". The rollout does not complete: " + whyStuck(one.health.Reason)
	if one.health.Pod != "" {
		event.Note += ", as in pod " + one.health.Pod
	}
	event.Note += ". If the change is wrong, undo it: the workload is then restarted again"
	return event
}

func causeNames(causes []Cause) []string {
	names := make([]string, 0, len(causes))
	for _, cause := range causes {
		names = append(names, cause.Object.String())
	}
	return names
}

// whyStuck says for people what reason means.
func whyStuck(reason StuckReason) string {
	switch reason {
	case StuckDeadline:
		return "it exceeded its progress deadline (" + string(reason) + ")"
	case StuckNoProgress:
		return "no pod was replaced for " + fmt.Sprint(rolloutPatience.Minutes()) + " minutes"
	case StuckCrashing, StuckConfig, StuckNotCreated, StuckNotRun, StuckImagePull, StuckInvalidImage:
		return "its new pods fail (" + string(reason) + ")"
	}
	return string(reason)
}

// stuckNote is the note of the Event on the object that changed.
func stuckNote(of stuckOf) string {
	names := make([]string, 0, maxNamed)
	for _, k := range of.workloads[:min(maxNamed, len(of.workloads))] {
		names = append(names, k.String())
	}
	note := "1 workload that was restarted for it does not complete its rollout"
	if n := len(of.workloads); n > 1 {
		note = fmt.Sprintf("%d workloads that were restarted for it do not complete their rollouts", n)
	}
	note += ": " + strings.Join(names, ", ")
	if more := len(of.workloads) - len(names); more > 0 {
		note += fmt.Sprintf(" and %d more", more)
	}
	return note + ". Of the first, " + whyStuck(of.reason)
}
