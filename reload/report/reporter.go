package report

import (
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/live"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/gather"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/track"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Reporter reports in Events, logs and metrics what was done to consumers, and what
// waits.
type Reporter struct {
	caches    *informers.Caches
	rules     *rules.Live[spec.Rule]
	settings  *live.Value[*spec.Compiled]
	consumers *gather.Consumers
	reads     *gather.Reader
	events    *events.Recorder
	metrics   *Metrics
	// observer receives what was done; may be nil.
	observer Observer
	log      *zap.Logger
	now      func() time.Time

	Repeats   Repeats
	mu        sync.Mutex // guards summaries
	summaries summaries
	memory    *track.Memory
}

// ReporterParams are what a Reporter needs.
type ReporterParams struct {
	Caches    *informers.Caches
	Rules     *rules.Live[spec.Rule]
	Settings  *live.Value[*spec.Compiled]
	Consumers *gather.Consumers
	Reads     *gather.Reader
	Events    *events.Recorder
	Metrics   *Metrics
	Memory    *track.Memory
	Observer  Observer
	Log       *zap.Logger
	Now       func() time.Time
}

// NewReporter allocates a Reporter.
func NewReporter(p ReporterParams) *Reporter {
	return &Reporter{
		caches: p.Caches, rules: p.Rules, settings: p.Settings, consumers: p.Consumers, reads: p.Reads, events: p.Events, metrics: p.Metrics,
		memory: p.Memory, observer: p.Observer, log: p.Log, now: p.Now, Repeats: Repeats{now: p.Now}, summaries: summaries{},
	}
}

// currentSettings returns the settings in force.
func (r *Reporter) currentSettings() spec.Settings { return r.settings.Load().Settings }

// Done reports what was done to a consumer.
func (r *Reporter) Done(to workload.Consumer, decision decide.Decision) {
	k := to.Key()
	r.metrics.record(decision, resultDone)
	r.Repeats.Clear(k, topicFailed)
	r.logDone(k, decision)
	r.notifyObserver(k, decision)
	if outcome, news := outcomeOf(to, decision.Step); news {
		r.Count(r.Origins(decision.Causes), k, outcome)
	}
	switch {
	case decision.Step == spec.StepRestart:
		r.events.Record(restarted(to, decision))
	case decision.LostBaseline():
		r.events.Record(baselineAdopted(to, decision))
	}
	if old := decision.MayReadOld(); len(old) > 0 && to.Info().Template != nil {
		r.events.Record(mayReadOld(to, decision.Rule, old))
	}
}

// EmitSummaries reports, on objects that changed, what followed.
func (r *Reporter) EmitSummaries() {
	for _, one := range r.dueSummaries() {
		r.emitOn(one.Object, reloaded(one, nil))
	}
}

func (r *Reporter) dueSummaries() []summary {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.summaries) == 0 {
		return nil
	}
	return r.summaries.take(r.now(), r.memory.WaitsByCause())
}

// emitOn records event about ref, unless its namespace is terminating: new Events are
// refused there.
func (r *Reporter) emitOn(ref object.Ref, event events.Event) {
	if namespace, found := r.caches.Namespaces.Get("", ref.Namespace); found && !namespace.Terminating {
		event.About = r.reference(ref)
		r.events.Record(event)
	}
}

// EmitStuckBecause reports on an object that changed the rollouts that do not
// complete because of it.
func (r *Reporter) EmitStuckBecause(cause decide.Cause, note string) {
	r.emitOn(cause.Object, events.Event{Rule: cause.Rule, Warning: true, Persisting: true, Reason: "RolloutStuck", Action: "Reload", Note: note})
}

// EmitReverted reports that somebody reverted what was written on w, and counts it once
// per restart. text identifies the revert; empty if there is none.
func (r *Reporter) EmitReverted(w *workload.Workload, due decide.Decision, text string) {
	say, news := r.Repeats.ShouldEmit(w.Key(), topicReverted, text)
	if !say {
		return
	}
	if news {
		r.metrics.reverted.WithLabelValues(string(w.Kind)).Inc()
	}
	r.log.Warn("a restart was reverted", zap.Stringer("consumer", w.Key()), zap.String("how", string(due.Undone)))
	if due.Undone != "" {
		r.events.Record(restartUndone(w, due))
	} else {
		r.events.Record(stampReverted(w, r.consumers.RootOwner(w).Unsupported))
	}
}

// EmitNotRestarted reports consumers of changed data that nothing can restart. say is
// false if too many Events were recorded already. It reports whether it recorded one.
func (r *Reporter) EmitNotRestarted(about corev1.ObjectReference, read []decide.Input, say bool) bool {
	k := workload.KeyAbout(about)
	r.Count(r.Origins(decide.CausesOf(read)), k, outcomeNotRestarted)
	if !say {
		return false
	}
	event := notRestarted(about, read)
	if due, _ := r.Repeats.ShouldEmit(k, topicNoTemplate, event.Note); !due {
		return false
	}
	r.log.Info("not restarted, there is no pod template", zap.Stringer("consumer", k), zap.Strings("changed", decide.Names(read)))
	r.events.Record(event)
	return true
}

// EmitJob reports a Job that asks, by annotation, for what Headwater does not support.
func (r *Reporter) EmitJob(k kinds.Key, job *batchv1.Job, annotation, problem string) {
	event := ignoredAnnotation(events.Reference("batch/v1", "Job", job), optin.Fault{Annotation: annotation, Problem: problem})
	if say, _ := r.Repeats.ShouldEmit(k, annotation, string(job.UID)); say {
		r.events.Record(event)
	}
}

func (r *Reporter) logDone(k kinds.Key, decision decide.Decision) {
	log := r.log.With(zap.Stringer("consumer", k), zap.String("rule", decision.Rule), zap.String("reason", string(decision.Reason)))
	switch {
	case decision.Step == spec.StepRestart:
		log.Info("restarted a workload whose data changed", zap.Strings("changed", decision.Changed))
	case decision.Step == spec.StepRefresh:
		log.Debug("refreshed", zap.Strings("changed", decision.Changed))
	case decision.Step == spec.StepConfirm:
		log.Debug("refresh confirmed", zap.Strings("changed", decision.Changed))
	case decision.Reason == spec.ReasonDelivered:
		log.Info("not restarted, its pods were replaced after the change already", zap.Strings("changed", decision.Changed))
	case decision.LostBaseline():
		log.Warn("adopted a new baseline in place of one that cannot be compared with")
	default:
		log.Debug("adopted")
	}
}

// Failed counts a failed write, and reports it on the consumer if it is not temporary.
// The queue logs the error.
func (r *Reporter) Failed(to workload.Consumer, decision decide.Decision, err error) {
	if Overtaken(err) {
		return
	}
	r.metrics.record(decision, resultFailed)
	answer, refused := refusal(err)
	if !refused {
		return
	}
	say, news := r.Repeats.ShouldEmit(to.Key(), topicFailed, string(decision.Step)+answer)
	if news {
		r.Count(r.Origins(decision.Causes), to.Key(), outcomeFailed)
	}
	if say {
		r.events.Record(failed(to, decision, answer))
	}
}

// Origins returns the objects that users edit: the source of a clone, or the object
// itself if no rule governs it.
func (r *Reporter) Origins(causes []decide.Cause) []decide.Cause {
	var origins []decide.Cause
	for _, cause := range causes {
		clone, found := r.caches.Clones[cause.Object.Kind].Get(cause.Object.Namespace, cause.Object.Name)
		rule, known := r.rules.Load().Named(cause.Rule)
		switch {
		case found && cause.Rule != "":
			if marks, readable := mark.Of(clone); readable {
				cause.Object = marks.Source
			}
		case known:
			cause.Object = rule.SourceOf(cause.Object)
		}
		if !slices.Contains(origins, cause) {
			origins = append(origins, cause)
		}
	}
	return origins
}

// Count adds the result that a change of the objects had for k to their summaries.
func (r *Reporter) Count(origins []decide.Cause, k kinds.Key, outcome outcomeKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.summaries.add(origins, k, outcome, r.now())
}

// reference returns a reference to ref, with its UID if known: kubectl describe selects
// Events by UID, kubectl events --for by kind and name.
func (r *Reporter) reference(ref object.Ref) *corev1.ObjectReference {
	named := object.NewMeta(ref)
	var meta metav1.Object = &named
	if source, _ := r.caches.Sources.Get(ref); source != nil {
		meta = source
	} else if clone, found := r.caches.Clones[ref.Kind].Get(ref.Namespace, ref.Name); found {
		meta = clone
	} else if read := r.reads.Latest(ref); read != nil {
		meta = read
	}
	return events.Reference("v1", string(ref.Kind), meta)
}
