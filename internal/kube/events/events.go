package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/text"
)

// ReportingController is the reportingController of Headwater's Events.
const ReportingController = "headwater"

const (
	// eventsPerSecond limits the load of Events on the API server.
	eventsPerSecond = 20
	// eventsWaiting bounds the memory that a burst of Events uses.
	queueSize = 4096
	// Denials have a queue and a rate of their own, because others cause them.
	denialsPerSecond, denialsAtOnce, denialsQueued = 1, 10, 256
	// maxNote is the API server's limit for a note, in bytes.
	maxNote = 1024
	// lookAgain is how often Run checks for delayed Events that are due.
	checkInterval = 5 * time.Second
	// maxAttempts and retryInterval are client-go's values for sending an Event.
	maxAttempts   = 12
	retryInterval = 10 * time.Second
)

// Recorder records Kubernetes Events. Record never blocks and never fails; if the
// queue is full, it drops the Event and counts it. client-go's recorder is not
// used, because it identifies an Event without its note: an object would show the
// first cause of a failure for as long as it fails.
type Recorder struct {
	client   eventsclient.EventsV1Interface
	instance string
	queue    chan Event
	limiter  flowcontrol.RateLimiter
	// denials sends denials, nil in itself.
	denials     *Recorder
	dropped     prometheus.Counter
	subscribers []func(Event)
	clock       clock.WithTicker
	log         *zap.Logger
}

// NewRecorder returns a Recorder. It queues Events until Run starts.
func NewRecorder(client kubernetes.Interface, registry *prometheus.Registry, log *zap.Logger) *Recorder {
	host, _ := os.Hostname() // only identifies the replica
	e := &Recorder{
		client: client.EventsV1(), instance: ReportingController + "-" + host, clock: clock.RealClock{},
		queue:   make(chan Event, queueSize),
		limiter: flowcontrol.NewTokenBucketRateLimiter(eventsPerSecond, eventsPerSecond),
		dropped: promauto.With(registry).NewCounter(prometheus.CounterOpts{
			Name: "headwater_events_dropped_total", Help: "Kubernetes Events that were not recorded, because too many were recorded at once.",
		}),
		log: log.Named("events"),
	}
	denials := *e
	denials.queue = make(chan Event, denialsQueued)
	denials.limiter = flowcontrol.NewTokenBucketRateLimiter(denialsPerSecond, denialsAtOnce)
	e.denials = &denials
	return e
}

// Run sends Events until ctx ends.
func (e *Recorder) Run(ctx context.Context) {
	if e.denials != nil {
		var running sync.WaitGroup
		defer running.Wait()
		running.Go(func() { e.denials.Run(ctx) })
	}
	pending := newThrottle(e.dropped.Inc)
	again := e.clock.NewTicker(checkInterval)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-e.queue:
			if due := pending.add(event, e.clock.Now()); due != nil {
				e.write(ctx, due)
			}
		case <-again.C():
			for _, due := range pending.due(e.clock.Now()) {
				e.write(ctx, due)
			}
		}
	}
}

// write sends s. If the API server cannot be reached, it retries maxAttempts times
// and then drops s; other Events wait meanwhile.
func (e *Recorder) write(ctx context.Context, s *series) {
	for range maxAttempts {
		if e.limiter.Wait(ctx) != nil {
			return
		}
		err := e.send(ctx, s)
		switch answered := apierrors.APIStatus(nil); {
		case err == nil || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			return
		case errors.As(err, &answered):
			e.log.Warn("event not recorded", zap.String("reason", s.Reason), zap.String("note", s.Note), zap.Error(err))
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-e.clock.After(retryInterval):
		}
	}
	e.dropped.Inc()
}

// send creates the Event of s, or counts a repeat of the existing one.
func (e *Recorder) send(ctx context.Context, s *series) error {
	client := e.client.Events(s.namespace())
	if s.name != "" {
		err := count(ctx, client, s)
		if err == nil || !apierrors.IsNotFound(err) {
			return err
		}
		s.restart() // the Event expired
	}
	created := s.object(e.instance)
	_, err := client.Create(ctx, created, metav1.CreateOptions{})
	switch {
	case err == nil:
		s.name = created.Name
		return nil
	case !apierrors.IsAlreadyExists(err):
		return err
	}
	stored, err := client.Get(ctx, created.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !s.resume(stored) {
		return nil
	}
	return count(ctx, client, s)
}

// count stores how often s was repeated.
func count(ctx context.Context, client eventsclient.EventInterface, s *series) error {
	patch, err := json.Marshal(map[string]*eventsv1.EventSeries{"series": s.repeats()})
	if err != nil {
		return fmt.Errorf("event: %w", err)
	}
	_, err = client.Patch(ctx, s.name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// Reference returns the reference of an object for an Event.
func Reference(apiVersion, kind string, meta metav1.Object) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: apiVersion, Kind: kind,
		Namespace: meta.GetNamespace(), Name: meta.GetName(), UID: meta.GetUID(),
	}
}

// NameOf returns the object of an Event as Kind/namespace/name, or as Kind/name if it has no
// namespace.
func NameOf(ref *corev1.ObjectReference) string {
	if ref.Namespace == "" {
		return ref.Kind + "/" + ref.Name
	}
	return ref.Kind + "/" + ref.Namespace + "/" + ref.Name
}

// Event reports something about an object to its owner. The note must never
// contain a value of a Secret.
type Event struct {
	// Rule is the rule that caused the Event; empty if none did.
	Rule    string
	About   *corev1.ObjectReference
	Related *corev1.ObjectReference
	Warning bool
	Reason  string
	Action  string
	// Note is the message. Record truncates it to the API server's limit.
	Note string
	// Annotations are data for commands. They must never contain a value of a
	// Secret.
	Annotations map[string]string
	// Persisting is true for a condition rather than an occurrence: the caller
	// records it repeatedly while the condition persists, also after a restart. A
	// repeat within dedupe.Interval is then not counted. It is false when the condition
	// comes back.
	Persisting bool

	at time.Time
}

// Subscribe calls hear for every recorded Event, on the goroutine of the caller of
// Record; hear must not block. Call Subscribe before the first Record.
func (e *Recorder) Subscribe(hear func(Event)) { e.subscribers = append(e.subscribers, hear) }

// Record queues event for sending.
func (e *Recorder) Record(event Event) { e.record(event, e.queue) }

// RecordDenial is Record for a denied request. Denials never delay other Events.
func (e *Recorder) RecordDenial(event Event) { e.record(event, e.denials.queue) }

func (e *Recorder) record(event Event, queue chan<- Event) {
	event.Note, event.at = text.Truncate(event.Note, maxNote-len(text.Ellipsis)), e.clock.Now()
	for _, hear := range e.subscribers {
		hear(event)
	}
	e.log.Debug("event", zap.String("reason", event.Reason), zap.String("note", event.Note))
	select {
	case queue <- event:
	default:
		e.dropped.Inc()
	}
}
