package report

import (
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/dedupe"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/live"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/gather"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/track"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Reporter reports in Events, logs and metrics what was done to consumers, and what
// waits.
type Reporter struct {
	Caches    *informers.Caches
	Settings  *live.Value[*spec.Compiled]
	Consumers *gather.Consumers
	Reads     *gather.Reader
	Events    *events.Recorder
	Metrics   *Metrics
	Memory    *track.Memory
	Log       *zap.Logger
	Now       func() time.Time

	Repeats   Repeats
	mu        sync.Mutex // guards summaries
	summaries summaries
}

// Init completes a Reporter whose exported fields are set.
func (r *Reporter) Init() *Reporter {
	r.Repeats.Now, r.summaries = r.Now, summaries{}
	return r
}

// EmitOnce records events, unless this text about the topic was reported lately. news is
// true if the text is new. An empty text ends the topic.
func (r *Reporter) EmitOnce(k kinds.Key, topic, text string, all ...events.Event) (said, news bool) {
	due := r.Repeats.Due(k, topic, text)
	if due == dedupe.NotDue {
		return false, false
	}
	for _, event := range all {
		event.Persisting = event.Persisting && due != dedupe.Back
		r.Events.Record(event)
	}
	return true, due.IsNews()
}

// Written reports what was written on a consumer, or the error.
func (r *Reporter) Written(to workload.Consumer, d decide.Decision, err error) {
	if err != nil {
		r.failed(to, d, err)
		return
	}
	if k := to.Key(); !r.Memory.IsWaiting(k) { // a waiting change stays pending
		if made, found := r.Memory.TakeChange(k); found {
			r.observeLatency(d, made)
		}
	}
	r.done(to, d)
}

func (r *Reporter) done(to workload.Consumer, decision decide.Decision) {
	k := to.Key()
	r.Metrics.record(decision, resultDone)
	r.Repeats.Clear(k, topicFailed)
	r.logDone(k, decision)
	if outcome, news := outcomeOf(to, decision.Step); news {
		r.Count(decision.Causes, k, outcome)
	}
	switch {
	case decision.Step == spec.StepRestart:
		r.Events.Record(restarted(to, decision))
	case decision.LostBaseline():
		r.Events.Record(baselineAdopted(to, decision))
	}
	if old := decision.MayReadOld(); len(old) > 0 && to.Info().StampAt() != nil {
		r.Events.Record(mayReadOld(to, decision.Rule, old))
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
	return r.summaries.take(r.Now(), r.Memory.WaitsByCause())
}

// emitOn records event about ref, unless its namespace is terminating: new Events are
// refused there.
func (r *Reporter) emitOn(ref object.Ref, event events.Event) {
	if namespace, found := r.Caches.Namespaces.Get("", ref.Namespace); found && !namespace.Terminating {
		meta, _ := r.cached(ref)
		event.About = events.Reference("v1", string(ref.Kind), meta) // kubectl describe selects Events by UID
		r.Events.Record(event)
	}
}

func (r *Reporter) logDone(k kinds.Key, decision decide.Decision) {
	log := r.Log.With(zap.Stringer("consumer", k), zap.String("rule", decision.Rule), zap.String("reason", string(decision.Reason)))
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

// failed counts a failed write, and reports it on the consumer if it is not temporary.
// The queue logs the error.
func (r *Reporter) failed(to workload.Consumer, decision decide.Decision, err error) {
	if Overtaken(err) {
		return
	}
	r.Metrics.record(decision, resultFailed)
	answer, refused := refusal(err)
	event := failed(to, decision, answer)
	if by, is := errors.AsType[AdmissionError](err); is {
		event, refused = changedByAdmission(event, by), true
	}
	if !refused {
		return
	}
	if _, news := r.EmitOnce(to.Key(), topicFailed, string(decision.Step)+event.Reason+answer, event); news {
		r.Count(decision.Causes, to.Key(), outcomeFailed)
	}
}

// Count adds the result that a change of the objects had for k to their summaries.
func (r *Reporter) Count(origins []decide.Cause, k kinds.Key, outcome outcomeKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.summaries.add(origins, k, outcome, r.Now())
}

// cached returns the metadata of ref that the caches hold, at least its name, and when its
// data was last written, in whole seconds; zero if no cache knows.
func (r *Reporter) cached(ref object.Ref) (metav1.Object, time.Time) {
	if source, _ := r.Caches.Sources.Get(ref); source != nil {
		return source, source.ChangedAt()
	}
	if clone, found := r.Caches.Clones[ref.Kind].Get(ref.Namespace, ref.Name); found {
		return clone, clone.ChangedAt
	}
	if read := r.Reads.Latest(ref); read != nil {
		return read, read.ChangedAt
	}
	named := object.NewMeta(ref)
	return &named, time.Time{}
}

// ChangeTimeOfClone returns when the change was made that a clone delivers: the change
// of its source, if that was written after the previous version of the clone, or else
// now. It is zero for a clone that existed when it was first seen.
func (r *Reporter) ChangeTimeOfClone(change informers.Change[*object.Digested], of object.Ref, now time.Time) time.Time {
	switch {
	case change.Added:
		return time.Time{}
	case change.Deleted:
		return now
	}
	source, _ := r.Caches.Sources.Get(of)
	if source == nil || !change.Old.ChangedAt.Before(source.ChangedAt()) {
		return now
	}
	return r.Memory.SourceChangedAt(source)
}

// observeLatency records the time from the change, at made, until now. If made is zero,
// because the change was not observed, the write times of the changed objects count.
// Adopting a baseline follows no change, so it is not recorded.
func (r *Reporter) observeLatency(decision decide.Decision, made time.Time) {
	if decision.Step != spec.StepRestart && decision.Step != spec.StepRefresh {
		return
	}
	now := r.Now()
	if made.IsZero() {
		made = now
		for _, cause := range decision.Causes {
			if _, at := r.cached(cause.Object); !at.IsZero() && at.Before(made) {
				made = at
			}
		}
	}
	took := max(0, now.Sub(made)) // the API server's clock may run ahead
	r.Metrics.latency.WithLabelValues(string(decision.Step)).Observe(took.Seconds())
}

// Repeats remembers which problems were reported on consumers, so that each is reported
// once, and repeated while it persists. Losing it with the process only repeats Events.
type Repeats struct {
	Now func() time.Time

	mu     sync.Mutex
	memory dedupe.Notes[topicKey]
}

// The topics of a consumer, besides the names of annotations.
const (
	topicWaiting    = "waiting"
	topicStuck      = "stuck"
	topicMisspelt   = "misspelt"
	topicFailed     = "failing"
	topicReverted   = "reverted"
	TopicNoTemplate = "bare"
)

// topicKey is one topic of one consumer.
type topicKey struct {
	kinds.Key
	about string
}

// Due returns whether text about this topic is due now. An empty text ends the topic.
func (t *Repeats) Due(k kinds.Key, about, text string) dedupe.Due {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text == "" {
		t.memory.Over(topicKey{k, about}, t.Now())
		return dedupe.NotDue
	}
	return t.memory.Due(topicKey{k, about}, text, t.Now())
}

// Clear records that the problem does not persist.
func (t *Repeats) Clear(k kinds.Key, about string) { t.Due(k, about, "") }

// Forget drops all topics of a consumer.
func (t *Repeats) Forget(k kinds.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, about := range append(mark.WishAnnotations(), topicWaiting, topicFailed, topicReverted, TopicNoTemplate, topicStuck, topicMisspelt) {
		t.memory.Forget(topicKey{k, about})
	}
}

// The results of an action.
const (
	resultDone   = "Done"
	resultFailed = "Failed"
	resultHeld   = "Held"
)

func (m *Metrics) record(decision decide.Decision, result string) {
	action := decision.Step
	if action == spec.StepHold {
		action = spec.StepRestart // the restart is what is held
	}
	m.actions.WithLabelValues(decision.Rule, string(action), string(decision.Reason), result).Inc()
}
