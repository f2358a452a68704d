package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
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

	"github.com/headwater-k8s/headwater/internal/cut"
)

// ReportingController is who Headwater's Events are from.
const ReportingController = "headwater"

const (
	// eventsPerSecond leaves the API server to the work that Events are about.
	eventsPerSecond = 20
	// eventsWaiting bounds the memory that a burst takes.
	queueSize = 4096
	// maxNote is what the API server accepts of a note, in bytes.
	maxNote = 1024
	// lookAgain is how often it is asked whether what was put off is due.
	checkInterval = 5 * time.Second
	// An Event is tried that often, with that pause, as client-go does.
	maxAttempts   = 12
	retryInterval = 10 * time.Second
)

// Recorder records Kubernetes Events. Recording never blocks and never fails the
// caller; what comes faster than can be sent for long is dropped and counted.
// client-go's recorder is not used: it tells Events apart without their notes,
// so that an object would show the first cause of a failure for as long as it
// fails.
type Recorder struct {
	client      eventsclient.EventsV1Interface
	instance    string
	queue       chan Event
	limiter     flowcontrol.RateLimiter
	dropped     prometheus.Counter
	subscribers []func(Event)
	clock       clock.WithTicker
	log         *zap.Logger
}

// NewRecorder returns an Events that keeps what it can until Run.
func NewRecorder(client kubernetes.Interface, registry *prometheus.Registry, log *zap.Logger) *Recorder {
	host, _ := os.Hostname() // says no more than which replica it was
	return &Recorder{
		client: client.EventsV1(), instance: ReportingController + "-" + host, clock: clock.RealClock{},
		queue:   make(chan Event, queueSize),
		limiter: flowcontrol.NewTokenBucketRateLimiter(eventsPerSecond, eventsPerSecond),
		dropped: promauto.With(registry).NewCounter(prometheus.CounterOpts{
			Name: "headwater_events_dropped_total", Help: "Kubernetes Events that were not recorded, since too many came at once.",
		}),
		log: log.Named("events"),
	}
}

// Run sends events until ctx ends.
func (e *Recorder) Run(ctx context.Context) {
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

// write sends s. While the API server cannot be reached everything waits, as
// long as there is hope that it is still of interest.
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

// send creates the Event of s, or counts a repeat on the one that exists.
func (e *Recorder) send(ctx context.Context, s *series) error {
	client := e.client.Events(s.namespace())
	if s.name != "" {
		err := count(ctx, client, s)
		if err == nil || !apierrors.IsNotFound(err) {
			return err
		}
		s.restart() // the API server has forgotten it
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

// Reference names an object in an Event.
func Reference(apiVersion, kind string, meta metav1.Object) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: apiVersion, Kind: kind,
		Namespace: meta.GetNamespace(), Name: meta.GetName(), UID: meta.GetUID(),
	}
}

// Event is one thing worth telling the owner of an object. Its note must never
// hold a value of a Secret.
type Event struct {
	// Rule is the name of the rule that it follows from; empty where none does.
	Rule    string
	About   *corev1.ObjectReference
	Related *corev1.ObjectReference
	Warning bool
	Reason  string
	Action  string
	// Note is cut to what an Event holds.
	Note string
	// Annotations hold what commands read of the Event; they must never hold a
	// value of a Secret.
	Annotations map[string]string
	// Persisting is true for a condition rather than an occurrence: the caller
	// records it again while it lasts, and after each start of the process. What
	// was stored less than again.After ago is then not counted a second time.
	Persisting bool

	at time.Time
}

// Subscribe has hear called with every Event that is recorded, in the place
// where it is: hear must not block. It is called before anything is recorded.
func (e *Recorder) Subscribe(hear func(Event)) { e.subscribers = append(e.subscribers, hear) }

// Record has event sent.
func (e *Recorder) Record(event Event) {
	event.Note, event.at = cut.To(event.Note, maxNote-len(cut.More)), e.clock.Now()
	for _, hear := range e.subscribers {
		hear(event)
	}
	e.log.Debug("event", zap.String("reason", event.Reason), zap.String("note", event.Note))
	select {
	case e.queue <- event:
	default:
		e.dropped.Inc()
	}
}
