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
)

// kindJob is no kind of consumer: the pods of Jobs are consumers. A Job is read to
// see whether its owner counts on Reloader, which deletes and recreates it.
const kindJob Kind = "Job.batch"

// noteJob has the Job of a new pod read, if Reloader's annotations are honoured.
// That of a CronJob is not: the CronJob is stamped.
func (c *controller) noteJob(pod *Pod) {
	if settings := c.honoured(); pod.Controller == (podController{}) || !settings.optIn() || !settings.honours(Reloader) {
		return
	}
	if _, scheduled := c.consumers.ownerOf(pod); scheduled {
		return
	}
	if k := keyAbout(pod.Controller.Value()); k.kind == kindJob {
		c.queue.Bulk(k)
	}
}

// reconcileJob reports a running Job that Reloader would recreate.
func (c *controller) reconcileJob(ctx context.Context, k key) error {
	job, err := c.jobs.Jobs(k.namespace).Get(ctx, k.name, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		c.log.Warn("may not read a Job, so nobody hears whether Reloader would recreate it", zap.Stringer("job", k))
		return nil
	}
	if err != nil {
		return err
	}
	annotation := recreatedFor(job)
	if annotation == "" || isFinished(job) {
		return nil
	}
	c.report.tellJob(k, job, annotation,
		"Headwater does not recreate Jobs, as Reloader does; when data changes that its pods need, delete and recreate the Job")
	return nil
}

// recreatedFor returns the first annotation by which the owner of job asks
// Reloader for something; empty where there is none, or where an annotation of
// Headwater's replaces it.
func recreatedFor(job *batchv1.Job) string {
	for _, own := range []string{mark.Reload, mark.ReloadOn} {
		if _, replaced := job.Annotations[own]; replaced {
			return ""
		}
	}
	for _, kind := range object.Kinds {
		typed := []string{mark.ReloaderTypedAuto(kind), mark.ReloaderNames(kind)}
		says := whoSays(job.Annotations, job.Spec.Template.Annotations, typed...)
		asked := readReloader(kindJob, job.Namespace, says, nil)
		if !asked.auto[kind] && !asked.search[kind] && len(asked.names)+len(asked.patterns) == 0 {
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

// isFinished reports whether job has ended, one way or the other.
func isFinished(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}
