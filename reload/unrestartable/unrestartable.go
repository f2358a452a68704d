package unrestartable

import (
	"context"
	"slices"

	"go.uber.org/zap"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	batchclient "k8s.io/client-go/kubernetes/typed/batch/v1"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/gather"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/report"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/track"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Reporter reports consumers of changed data that nothing can restart, and Jobs that
// Reloader would recreate.
type Reporter struct {
	*report.Reporter

	Gatherer func() (*gather.Gatherer, error)
	Jobs     batchclient.JobsGetter
}

// JobOf returns the Job of a new pod if Reloader compatibility is enabled. It skips Jobs
// of CronJobs, because Headwater stamps the CronJob.
func (r *Reporter) JobOf(pod *workload.Pod) (k kinds.Key, found bool) {
	if settings := r.Settings.Load(); pod.Controller == (workload.PodController{}) || !settings.OptsIn() || !settings.Honours(spec.Reloader) {
		return k, false
	}
	if _, scheduled := r.Consumers.OwnerOf(pod); scheduled {
		return k, false
	}
	k = workload.KeyAbout(pod.Controller.Value())
	return k, k.Kind == kinds.KindJob
}

// ReconcileJob reports a running Job that Reloader would recreate.
func (r *Reporter) ReconcileJob(ctx context.Context, k kinds.Key) error {
	job, err := r.Jobs.Jobs(k.Namespace).Get(ctx, k.Name, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		r.Log.Warn("read Job: forbidden; cannot report whether Reloader would recreate it", zap.Stringer("job", k))
		return nil
	}
	if err != nil {
		return err
	}
	if annotation := recreatedFor(job); annotation != "" && !isFinished(job) {
		fault := optin.Fault{Annotation: annotation, Problem: "Headwater does not recreate Jobs, as Reloader does; when data changes that its pods need, delete and recreate the Job"}
		r.EmitOnce(k, annotation, string(job.UID), report.IgnoredAnnotation(events.Reference("batch/v1", "Job", job), fault))
	}
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

// maxEvents limits the Events that are recorded at once. The Event Reloaded on
// the changed object counts all consumers.
const maxEvents = 100

// Changed records the pods that consume ref, whose keys changed, and that nothing can
// restart.
func (r *Reporter) Changed(ref object.Ref, keys []string, governing ...spec.Rule) {
	if len(keys) == 0 {
		return
	}
	due := r.Now().Add(spec.LongestDebounce(governing))
	for _, pod := range r.Consumers.PodsUsing(ref) {
		if about, is := r.Consumers.Untemplated(pod); is && pod.Running() {
			r.Memory.AddUnreached(about, pod.Key(), ref, keys, due)
		}
	}
}

// ReportDue reports the recorded pods that are due.
func (r *Reporter) ReportDue() {
	recorded := 0
	for _, one := range r.Memory.TakeUnreached(r.Now()) {
		read := r.readBefore(one)
		if len(read) == 0 {
			continue
		}
		k := workload.KeyAbout(one.About)
		r.Count(decide.CausesOf(read), k, report.OutcomeNotRestarted)
		if recorded >= maxEvents {
			continue
		}
		event := notRestarted(one.About, read)
		if said, _ := r.EmitOnce(k, report.TopicNoTemplate, event.Note, event); said {
			r.Log.Info("not restarted, there is no pod template", zap.Stringer("consumer", k), zap.Strings("changed", decide.Names(read)))
			recorded++
		}
	}
}

// readBefore returns what the pods read at their start, before it changed. The pods of
// one controller are assumed to consume the same objects.
func (r *Reporter) readBefore(one *track.UnreachedPods) []decide.Input {
	g, err := r.Gatherer()
	if err != nil {
		return nil // without the key no data is known, so no change is either
	}
	for k := range one.Pods {
		pod, found := r.Consumers.Pods.Get(k.Namespace, k.Name)
		if !found {
			continue
		}
		if read := decide.UnreachedBy(pod, g.PodInputs(pod), one.Changed); len(read) > 0 {
			return read
		}
	}
	return nil
}

// notRestarted reports a consumer of changed data that cannot be restarted.
func notRestarted(about corev1.ObjectReference, read []decide.Input) events.Event {
	return events.Event{
		About: &about, Warning: true, Rule: decide.FirstRule(read), Reason: "NotRestarted", Action: "Restart",
		Note: "Not restarted, although data that it reads at its start changed: " + report.SomeOf(decide.Names(read), report.MaxNamed) + ". " + replaceIt(about),
	}
}

// replaceIt says how to make pods read the new data.
func replaceIt(about corev1.ObjectReference) string {
	switch kind := workload.KeyAbout(about).Kind; kind {
	case kinds.KindPod:
		return "It has no controller that would replace it: delete and recreate the Pod"
	case "Job.batch":
		return "The pod template of a Job cannot be changed: delete and recreate the Job if its pods need the new data"
	case "ReplicaSet.apps", "ReplicationController":
		return "A changed pod template replaces none of its pods: delete them, and it creates new ones"
	default:
		return "Headwater knows no pod template of a " + string(kind) + ": delete its pods, and it creates new ones; " +
			"or, if the kind holds a pod template, add it to reload.workloads in Headwater's configuration"
	}
}
