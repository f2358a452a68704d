package kube

import (
	"context"
	"fmt"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
)

// ReportingController is who Headwater's Events are from.
const ReportingController = "headwater"

// Events records Kubernetes Events. Recording never blocks and never fails the
// caller; repeats of one Event become a series.
type Events struct {
	broadcaster events.EventBroadcaster
	recorder    events.EventRecorder
	log         *zap.Logger
}

// NewEvents returns an Events that drops everything until Run.
func NewEvents(client kubernetes.Interface, log *zap.Logger) *Events {
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	return &Events{
		broadcaster: broadcaster,
		recorder:    broadcaster.NewRecorder(scheme.Scheme, ReportingController),
		log:         log.Named("events"),
	}
}

// Run sends events until ctx ends.
func (e *Events) Run(ctx context.Context) error {
	if err := e.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("start event recorder: %w", err)
	}
	return nil
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
	About   *corev1.ObjectReference
	Related *corev1.ObjectReference
	Warning bool
	Reason  string
	Action  string
	Note    string
}

// Record sends event.
func (e *Events) Record(event Event) {
	kind := corev1.EventTypeNormal
	if event.Warning {
		kind = corev1.EventTypeWarning
	}
	e.log.Debug("event", zap.String("reason", event.Reason), zap.String("note", event.Note))
	if event.Related == nil { // a nil *ObjectReference would not be a nil runtime.Object
		e.recorder.Eventf(event.About, nil, kind, event.Reason, event.Action, "%s", event.Note)
		return
	}
	e.recorder.Eventf(event.About, event.Related, kind, event.Reason, event.Action, "%s", event.Note)
}
