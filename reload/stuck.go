package reload

import (
	"time"

	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/health"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/report"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// judgeInterval is how late a rollout may be judged.
const judgeInterval = time.Second

// watchEarlierRestarts watches the rollouts that earlier leaders started.
func (c *controller) watchEarlierRestarts() {
	for _, w := range c.consumers.AllWorkloads() {
		if at := mark.ParseTime(w.Annotations[mark.RestartedAt]); !at.IsZero() {
			c.watchRestart(w, at, "", nil)
		}
	}
}

// watchRestart watches the rollout of a restart. A stamp on a CronJob, or on an object
// without a pod template, starts no rollout.
func (c *controller) watchRestart(w *workload.Workload, at time.Time, rule string, causes []decide.Cause) {
	if w.Kind != kinds.KindCronJob && !w.IsTarget() {
		c.watch.Begin(w.Key(), at, rule, causes)
	}
}

// judgeRollouts judges the rollouts that changed or are due, and reports the stuck
// ones.
func (c *controller) judgeRollouts() {
	now := c.now()
	for k, one := range c.watch.Take(now) {
		c.judge(k, one, now)
	}
	for cause, note := range c.watch.Notes(now) {
		c.report.EmitStuckBecause(cause, note)
	}
}

// judge judges the rollout of k. It stops watching a rollout that has been healthy for
// RolloutTimeout, or that was followed by a change of the pod template by somebody
// else.
func (c *controller) judge(k kinds.Key, one report.Watched, now time.Time) {
	w, found := c.consumers.Workload(k)
	if !found {
		c.watch.Forget(k)
		return
	}
	if shown := mark.ParseTime(w.Annotations[mark.RestartedAt]); shown.Equal(one.RestartedAt) && w.Edited {
		c.watch.Forget(k)
		c.report.Repeats.Clear(k, report.TopicStuck)
		return
	}
	pods := c.consumers.PodsOf(w)
	one.Health = health.JudgeRollout(c.consumers.EffectiveRollout(w), pods, one.RestartedAt, now)
	one.Due = one.Health.Again
	if one.Health.Health != health.Stuck {
		c.report.Repeats.Clear(k, report.TopicStuck)
	}
	if one.Health.Health == health.Healthy {
		one.Due = health.LastBound(pods, one.RestartedAt).Add(workload.RolloutTimeout)
		if !one.Due.After(now) {
			c.watch.Forget(k)
			return
		}
	}
	if one.Health.Health == health.Stuck && one.Causes == nil {
		one.Rule, one.Causes = c.likelyCauses(w, one.RestartedAt)
	}
	if c.watch.Judged(k, one, now) {
		c.log.Warn("rollout is stuck", zap.Stringer("consumer", k), zap.String("rule", one.Rule),
			zap.String("reason", string(one.Health.Reason)), zap.String("pod", one.Health.Pod))
	}
	if one.Health.Health == health.Stuck {
		c.report.EmitStuck(w, one)
	}
}

// likelyCauses returns the objects that changed last before a restart that an earlier
// leader started.
func (c *controller) likelyCauses(w *workload.Workload, restartedAt time.Time) (rule string, causes []decide.Cause) {
	g, err := c.gatherer()
	if err != nil {
		return "", []decide.Cause{}
	}
	var last []decide.Input
	for _, one := range g.Inputs(c.consumers, c.consumers.StampedGroup(w), c.currentSettings()) {
		switch {
		case !one.Restarts() || one.ChangedAt.After(restartedAt):
		case len(last) == 0 || one.ChangedAt.After(last[0].ChangedAt):
			last = []decide.Input{one}
		case one.ChangedAt.Equal(last[0].ChangedAt):
			last = append(last, one)
		}
	}
	return decide.FirstRule(last), append([]decide.Cause{}, c.report.Origins(decide.CausesOf(last))...)
}
