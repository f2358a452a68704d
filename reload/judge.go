package reload

import (
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/gather"
	"github.com/headwater-k8s/headwater/reload/health"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/report"
	"github.com/headwater-k8s/headwater/reload/revisions"
	"github.com/headwater-k8s/headwater/reload/spec"
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

// needsReports reports whether the rule of that name needs reports on its clones.
func (c *controller) needsReports(name string) bool {
	rule, known := c.rules.Load().Named(name)
	return known && rule.Delivered
}

// consumersOf finds what consumes clone: workloads, each by the one that is restarted
// for it, targets, and pods that read the clone through no pod template.
func (c *controller) consumersOf(clone *object.Digested) (found revisions.Found, err error) {
	g, err := c.gatherer()
	if err != nil {
		return found, err
	}
	ref, seen := clone.Ref(), map[kinds.Key]bool{}
	for _, w := range c.workloadsOf(ref, g) {
		root := c.consumers.RootOwner(w)
		found.Unread = found.Unread || root.NotSynced
		if root.NotSynced || seen[root.Root.Key()] {
			continue
		}
		seen[root.Root.Key()] = true
		if one, consumes := c.workloadConsumer(root.Root, ref, g); consumes {
			found.Consumers = append(found.Consumers, one)
		}
	}
	for _, pod := range c.consumers.PodsUsing(ref) {
		if !pod.Running() || c.consumers.FromTemplate(pod, ref) {
			continue
		}
		if one, consumes := c.podConsumer(pod, ref, g); consumes {
			found.Consumers = append(found.Consumers, one)
		}
	}
	found.Unread = found.Unread || g.Reading
	return found, nil
}

// workloadsOf returns the workloads and targets that use ref, except those that are
// being deleted.
func (c *controller) workloadsOf(ref object.Ref, g *gather.Gatherer) []*workload.Workload {
	all := slices.Clone(c.consumers.WorkloadsUsing(ref, c.currentSettings()))
	for _, k := range c.consumers.TargetsIn(ref.Namespace, g.Rules.All()) {
		if target, exists := c.consumers.Workload(k); exists {
			all = append(all, target)
		}
	}
	return slices.DeleteFunc(all, func(w *workload.Workload) bool { return w.DeletionTimestamp != nil })
}

// workloadConsumer returns what is known of top, which is restarted for the workloads
// that use ref. consumes is false if no rule and no annotation governs that use.
func (c *controller) workloadConsumer(top *workload.Workload, ref object.Ref, g *gather.Gatherer) (found health.Consumer, consumes bool) {
	k := top.Key()
	stored := c.Baseline(g.Hasher, top)
	g.Installed = c.InstalledAt(top)
	inputs := usesOf(g.Inputs(c.consumers, c.consumers.StampedGroup(top), c.currentSettings()), ref)
	if len(inputs) == 0 {
		return found, false
	}
	found = health.Consumer{
		Name: nameOf(k), Workload: c.consumers.EffectiveRollout(top), Pods: c.consumers.PodsOf(top), RestartedAt: c.Restarts(top).Last(),
	}
	for _, one := range inputs {
		one = decide.AsRecorded(g.Hasher, top.UID, stored, one)
		if one.OnChange().Step == spec.StepRefresh {
			c.refreshedBy(one, &found, g)
			continue
		}
		switch decide.StatusOf(g.Hasher, top.UID, stored, one) {
		case decide.Untracked:
		case decide.Current:
			if c.memory.AwaitsCache(k, top) {
				found.Waits = "rollout in progress"
			}
		case decide.FirstSight:
			found.Waits = "its data is not recorded yet"
		default:
			wait := c.memory.Wait(k)
			found.Waits = report.WaitText(wait.Reason, wait.Missing)
		}
	}
	return found, true
}

// refreshedBy adds to found the pods that show the input one without a restart.
func (c *controller) refreshedBy(one decide.Input, found *health.Consumer, g *gather.Gatherer) {
	for _, pod := range found.Pods {
		if slices.Contains(c.consumers.PodsUsing(one.Object), pod) {
			c.podShows(pod, one, found, g)
		}
	}
}

// podShows adds to found that the volumes of pod show the input one, or that they do
// not yet. Pods of Jobs end by themselves, so their state says nothing.
func (c *controller) podShows(pod *workload.Pod, one decide.Input, found *health.Consumer, g *gather.Gatherer) {
	switch decide.PodStatusOf(g.Hasher, pod, c.RefreshedFor(pod), one, c.now()) {
	case decide.Current:
		if pod.OwnerKind != kinds.KindJob && pod.OwnerKind != kinds.KindCronJob {
			found.Refreshed = append(found.Refreshed, pod)
		}
	case decide.Behind:
		found.Waits = "volumes are not refreshed yet"
	case decide.Missing:
		found.Waits = "lacks a key of " + one.Object.String()
	default:
	}
}

// podConsumer returns what is known of pod, which no workload restarts.
func (c *controller) podConsumer(pod *workload.Pod, ref object.Ref, g *gather.Gatherer) (found health.Consumer, consumes bool) {
	inputs := usesOf(c.decider().PodInputs(pod, g), ref)
	found = health.Consumer{Name: nameOf(pod.Key())}
	for _, one := range inputs {
		c.podShows(pod, one, &found, g)
	}
	return found, len(inputs) > 0
}

// usesOf returns those of inputs that are of ref, and governed.
func usesOf(inputs []decide.Input, ref object.Ref) []decide.Input {
	return decide.Filter(inputs, func(one decide.Input) bool { return one.Object == ref && one.Governed() })
}

// nameOf names a consumer inside its namespace.
func nameOf(k kinds.Key) string { return string(k.Kind) + "/" + k.Name }
