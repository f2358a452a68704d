package reload

import (
	"slices"
	"time"

	"go.uber.org/zap"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/live"
	"github.com/headwater-k8s/headwater/internal/locked"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// Reporter tells people, logs and metrics what was done to consumers, and what
// waits.
type Reporter struct {
	caches    *kube.Caches
	rules     *rules.Live[Rule]
	settings  *live.Value[*Compiled]
	consumers *consumers
	reads     *reads
	events    *kube.Events
	metrics   *metrics
	// onlooker, when there is one, is told of what was done.
	onlooker Onlooker
	log      *zap.Logger
	now      func() time.Time

	told    told
	tallies *locked.Value[tallies]
	sights  sights
}

// ReporterParams are what a Reporter needs.
type ReporterParams struct {
	caches    *kube.Caches
	rules     *rules.Live[Rule]
	settings  *live.Value[*Compiled]
	consumers *consumers
	reads     *reads
	events    *kube.Events
	metrics   *metrics
	onlooker  Onlooker
	log       *zap.Logger
	now       func() time.Time
}

// NewReporter allocates a Reporter.
func NewReporter(p ReporterParams) *Reporter {
	return &Reporter{
		caches: p.caches, rules: p.rules, settings: p.settings, consumers: p.consumers, reads: p.reads, events: p.events, metrics: p.metrics,
		onlooker: p.onlooker, log: p.log, now: p.now, told: told{now: p.now}, tallies: locked.New(tallies{}),
	}
}

// honoured is what the file says about the wishes of owners.
func (r *Reporter) honoured() Settings { return r.settings.Load().Settings }

// done tells what was done to a consumer.
func (r *Reporter) done(to consumer, decision Decision) {
	k := to.key()
	r.metrics.record(decision, resultDone)
	r.told.over(k, failing)
	r.logDone(k, decision)
	r.show(k, decision)
	if came, news := outcomeOf(to, decision.Step); news {
		r.tally(r.origins(decision.Causes), k, came)
	}
	switch {
	case decision.Step == StepRestart:
		r.events.Record(restarted(to, decision))
	case decision.lostBaseline():
		r.events.Record(baselineAdopted(to, decision))
	}
	if old := decision.mayReadOld(); len(old) > 0 && to.form().Template != nil {
		r.events.Record(mayReadOld(to, decision.Rule, old))
	}
}

// tellTallies tells on the objects that changed what came of it; waiting counts
// the restarts that wait because of each.
func (r *Reporter) tellTallies(waiting func() map[Cause]waitCount) {
	var due []summary
	r.tallies.Use(func(t tallies) {
		if len(t) > 0 {
			due = t.take(r.now(), waiting())
		}
	})
	for _, one := range due {
		r.tellOn(one.Object, reloaded(one, nil))
	}
}

// tellOn records event about ref, unless its namespace is being deleted, where
// nothing can be recorded any more.
func (r *Reporter) tellOn(ref object.Ref, event kube.Event) {
	if namespace, found := r.caches.Namespaces.Get("", ref.Namespace); found && !namespace.Terminating {
		event.About = r.reference(ref)
		r.events.Record(event)
	}
}

// tellStuckBecause reports on an object that changed the rollouts that do not
// complete because of it.
func (r *Reporter) tellStuckBecause(cause Cause, note string) {
	r.tellOn(cause.Object, kube.Event{Rule: cause.Rule, Warning: true, Persisting: true, Reason: "RolloutStuck", Action: "Reload", Note: note})
}

// tellReverted tells the owner of w that what was written on it was taken off or
// back, and counts it once per restart. text is empty where nothing was.
func (r *Reporter) tellReverted(w *Workload, due Decision, text string) {
	say, news := r.told.say(w.key(), reverted, text)
	if !say {
		return
	}
	if news {
		r.metrics.reverted.WithLabelValues(string(w.Kind)).Inc()
	}
	r.log.Warn("a restart was taken back", zap.Stringer("consumer", w.key()), zap.String("how", string(due.Undone)))
	if due.Undone != "" {
		r.events.Record(restartUndone(w, due))
	} else {
		r.events.Record(stampReverted(w, r.consumers.topOf(w).stranger))
	}
}

// tellNotRestarted reports consumers of changed data that nothing can restart. say
// is false for no Event, where too many were recorded already. It reports whether
// it recorded one.
func (r *Reporter) tellNotRestarted(about corev1.ObjectReference, read []Consumed, say bool) bool {
	k := keyAbout(about)
	r.tally(r.origins(causesOf(read)), k, outcomeNotRestarted)
	if !say {
		return false
	}
	event := notRestarted(about, read)
	if due, _ := r.told.say(k, templateless, event.Note); !due {
		return false
	}
	r.log.Info("not restarted, there is no pod template", zap.Stringer("consumer", k), zap.Strings("changed", names(read)))
	r.events.Record(event)
	return true
}

// tellJob reports a Job that asks, by annotation, for what Headwater does not do.
func (r *Reporter) tellJob(k key, job *batchv1.Job, annotation, problem string) {
	event := ignoredAnnotation(kube.Reference("batch/v1", "Job", job), fault{annotation: annotation, problem: problem})
	if say, _ := r.told.say(k, annotation, string(job.UID)); say {
		r.events.Record(event)
	}
}

func (r *Reporter) logDone(k key, decision Decision) {
	log := r.log.With(zap.Stringer("consumer", k), zap.String("rule", decision.Rule), zap.String("reason", string(decision.Reason)))
	switch {
	case decision.Step == StepRestart:
		log.Info("restarted a workload whose data changed", zap.Strings("changed", decision.Changed))
	case decision.Step == StepRefresh:
		log.Debug("refreshed", zap.Strings("changed", decision.Changed))
	case decision.Step == StepConfirm:
		log.Debug("refresh confirmed", zap.Strings("changed", decision.Changed))
	case decision.Reason == ReasonDelivered:
		log.Info("not restarted, its pods were replaced after the change already", zap.Strings("changed", decision.Changed))
	case decision.lostBaseline():
		log.Warn("adopted a new baseline in place of one that cannot be compared with")
	default:
		log.Debug("adopted")
	}
}

// recordFailure counts a write that failed, and tells the owner of the consumer
// where it does not pass by itself. The queue logs the error.
func (r *Reporter) recordFailure(to consumer, decision Decision, err error) {
	if overtaken(err) {
		return
	}
	r.metrics.record(decision, resultFailed)
	answer, refused := refusal(err)
	if !refused {
		return
	}
	say, news := r.told.say(to.key(), failing, string(decision.Step)+answer)
	if news {
		r.tally(r.origins(decision.Causes), to.key(), outcomeFailed)
	}
	if say {
		r.events.Record(failed(to, decision, answer))
	}
}

// origins are what people edit: the source of a clone that a rule governs, there
// or not, and any other object itself.
func (r *Reporter) origins(causes []Cause) []Cause {
	var origins []Cause
	for _, cause := range causes {
		clone, found := r.caches.Clones[cause.Object.Kind].Get(cause.Object.Namespace, cause.Object.Name)
		rule, known := r.rules.Load().Named(cause.Rule)
		switch {
		case found && cause.Rule != "":
			if marks, readable := mark.Of(clone); readable {
				cause.Object = marks.Source
			}
		case known:
			cause.Object = rule.sourceOf(cause.Object)
		}
		if !slices.Contains(origins, cause) {
			origins = append(origins, cause)
		}
	}
	return origins
}

func (r *Reporter) tally(origins []Cause, k key, came outcome) {
	r.tallies.Use(func(t tallies) { t.add(origins, k, came, r.now()) })
}

// reference names ref, with its UID where that is known: kubectl describe selects
// Events by UID, kubectl events --for by kind and name.
func (r *Reporter) reference(ref object.Ref) *corev1.ObjectReference {
	named := object.NewMeta(ref)
	var meta metav1.Object = &named
	if source, _ := r.caches.Sources.Get(ref); source != nil {
		meta = source
	} else if clone, found := r.caches.Clones[ref.Kind].Get(ref.Namespace, ref.Name); found {
		meta = clone
	} else if read := r.reads.latest(ref); read != nil {
		meta = read
	}
	return kube.Reference("v1", string(ref.Kind), meta)
}
