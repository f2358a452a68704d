package reload

import (
	"context"
	"slices"

	"go.uber.org/zap"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/track"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// enqueueJob enqueues the Job of a new pod if Reloader compatibility is enabled. It
// skips Jobs of CronJobs, because Headwater stamps the CronJob.
func (c *controller) enqueueJob(pod *workload.Pod) {
	if settings := c.currentSettings(); pod.Controller == (workload.PodController{}) || !settings.OptsIn() || !settings.Honours(spec.Reloader) {
		return
	}
	if _, scheduled := c.consumers.OwnerOf(pod); scheduled {
		return
	}
	if k := workload.KeyAbout(pod.Controller.Value()); k.Kind == kinds.KindJob {
		c.queue.Bulk(k)
	}
}

// reconcileJob reports a running Job that Reloader would recreate.
func (c *controller) reconcileJob(ctx context.Context, k kinds.Key) error {
	job, err := c.jobs.Jobs(k.Namespace).Get(ctx, k.Name, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		c.log.Warn("read Job: forbidden; cannot report whether Reloader would recreate it", zap.Stringer("job", k))
		return nil
	}
	if err != nil {
		return err
	}
	annotation := recreatedFor(job)
	if annotation == "" || isFinished(job) {
		return nil
	}
	c.report.EmitJob(k, job, annotation,
		"Headwater does not recreate Jobs, as Reloader does; when data changes that its pods need, delete and recreate the Job")
	return nil
}

// recreatedFor returns the first annotation by which the owner of job asks Reloader to
// recreate it; empty if there is none, or if a headwater.dev annotation overrides it.
func recreatedFor(job *batchv1.Job) string {
	for _, own := range []string{mark.Reload, mark.ReloadOn} {
		if _, replaced := job.Annotations[own]; replaced {
			return ""
		}
	}
	for _, kind := range object.Kinds {
		typed := []string{mark.ReloaderTypedAuto(kind), mark.ReloaderNames(kind)}
		says := optin.WhoSays(job.Annotations, job.Spec.Template.Annotations, typed...)
		asked := optin.ReadReloader(kinds.KindJob, job.Namespace, says, nil)
		if !asked.Auto[kind] && !asked.Search[kind] && len(asked.Names)+len(asked.Patterns) == 0 {
			continue
		}
		for _, annotation := range append([]string{mark.ReloaderAuto, mark.ReloaderSearch}, typed...) {
			if value, set := says[annotation]; set && value != "false" {
				return annotation
			}
		}
	}
	return ""
}

// isFinished reports whether job completed or failed.
func isFinished(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}

// maxUnreachedEvents limits the Events that are recorded at once. The Event Reloaded on
// the changed object counts all consumers.
const maxUnreachedEvents = 100

// recordUnreached records the pods that consume ref and that nothing can restart.
func (c *controller) recordUnreached(ref object.Ref, keys []string, governing ...spec.Rule) {
	if len(keys) == 0 {
		return
	}
	due := c.now().Add(spec.LongestDebounce(governing))
	for _, pod := range c.consumers.PodsUsing(ref) {
		if about, is := c.consumers.Untemplated(pod); is && pod.Running() {
			c.memory.AddUnreached(about, pod.Key(), ref, keys, due)
		}
	}
}

// reportUnreached reports the recorded pods that are due.
func (c *controller) reportUnreached() {
	recorded := 0
	for _, one := range c.memory.TakeUnreached(c.now()) {
		read := c.readBefore(one)
		if len(read) == 0 {
			continue
		}
		if c.report.EmitNotRestarted(one.About, read, recorded < maxUnreachedEvents) {
			recorded++
		}
	}
}

// readBefore returns what the pods read at their start, before it changed. The pods of
// one controller are assumed to consume the same objects.
func (c *controller) readBefore(one *track.UnreachedPods) []decide.Input {
	g, err := c.gatherer()
	if err != nil {
		return nil // without the key no data is known, so no change is either
	}
	for k := range one.Pods {
		pod, found := c.consumers.Pods.Get(k.Namespace, k.Name)
		if !found {
			continue
		}
		if read := decide.UnreachedBy(pod, c.decider().PodInputs(pod, g), one.Changed); len(read) > 0 {
			return read
		}
	}
	return nil
}
