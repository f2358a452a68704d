package kube

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/headwater-k8s/headwater/internal/cut"
)

// ReportingController is who Headwater's Events are from.
const ReportingController = "headwater"

const (
	// eventsPerSecond leaves the API server to the work that Events are about;
	// client-go sends as many at once as there are.
	eventsPerSecond = 20
	// eventsWaiting bounds the memory that a burst takes.
	eventsWaiting = 4096
	// maxNote is what the API server accepts of a note, in bytes.
	maxNote = 1024
)

// Events records Kubernetes Events. Recording never blocks and never fails the
// caller; repeats of one Event become a series, and what comes faster than can
// be sent for long is dropped and counted.
type Events struct {
	broadcaster events.EventBroadcaster
	recorder    events.EventRecorder
	waiting     chan Event
	pace        flowcontrol.RateLimiter
	dropped     prometheus.Counter
	hear        []func(Event)
	log         *zap.Logger
}

// NewEvents returns an Events that drops everything until Run.
func NewEvents(client kubernetes.Interface, registry *prometheus.Registry, log *zap.Logger) *Events {
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	return &Events{
		broadcaster: broadcaster,
		recorder:    broadcaster.NewRecorder(scheme.Scheme, ReportingController),
		waiting:     make(chan Event, eventsWaiting),
		pace:        flowcontrol.NewTokenBucketRateLimiter(eventsPerSecond, eventsPerSecond),
		dropped: promauto.With(registry).NewCounter(prometheus.CounterOpts{
			Name: "headwater_events_dropped_total", Help: "Kubernetes Events that were not recorded, since too many came at once.",
		}),
		log: log.Named("events"),
	}
}

// Run sends events until ctx ends.
func (e *Events) Run(ctx context.Context) error {
	if err := e.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("start event recorder: %w", err)
	}
	go e.send(ctx)
	return nil
}

func (e *Events) send(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-e.waiting:
			if e.pace.Wait(ctx) == nil {
				e.hand(event)
			}
		}
	}
}

// Shutdown ends the recorder for good.
func (e *Events) Shutdown() { e.broadcaster.Shutdown() }

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
}

// Subscribe has hear called with every Event that is recorded, in the place
// where it is: hear must not block. It is called before anything is recorded.
func (e *Events) Subscribe(hear func(Event)) { e.hear = append(e.hear, hear) }

// Record has event sent.
func (e *Events) Record(event Event) {
	event.Note = cut.To(event.Note, maxNote-len(cut.More))
	for _, hear := range e.hear {
		hear(event)
	}
	e.log.Debug("event", zap.String("reason", event.Reason), zap.String("note", event.Note))
	select {
	case e.waiting <- event:
	default:
		e.dropped.Inc()
	}
}

func (e *Events) hand(event Event) {
	kind := corev1.EventTypeNormal
	if event.Warning {
		kind = corev1.EventTypeWarning
	}
	if event.Related == nil { // a nil *ObjectReference would not be a nil runtime.Object
		e.recorder.Eventf(event.About, nil, kind, event.Reason, event.Action, "%s", event.Note)
		return
	}
	e.recorder.Eventf(event.About, event.Related, kind, event.Reason, event.Action, "%s", event.Note)
}
