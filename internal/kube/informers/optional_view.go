package informers

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// optionalView is the cache of one served kind.
type optionalView[T metav1.Object] struct {
	*View[T]

	kind     OptionalKind[T]
	resource string
	stop     func()
	// failures counts the failed attempts before the first success.
	failures atomic.Int32
	refused  atomic.Bool
}

func newOptionalView[T metav1.Object](o *Optional[T], kind OptionalKind[T], resource string) (*optionalView[T], error) {
	v := &optionalView[T]{kind: kind, resource: resource}
	informer := dynamicinformer.NewFilteredDynamicInformer(o.clients.Dynamic, v.gvr(), o.clients.Scope.Namespace, 0, cache.Indexers{}, nil).Informer()
	if kind.MetadataOnly {
		informer = metadatainformer.NewFilteredMetadataInformer(o.clients.Metadata, v.gvr(), o.clients.Scope.Namespace, 0, cache.Indexers{}, nil).Informer()
	}
	view, err := NewView(o.name+": "+v.gvr().GroupResource().String(), informer, o.log, kind.Keep)
	if err != nil {
		return nil, err
	}
	v.View = view
	for index, values := range o.indexes {
		if err := view.AddIndex(index, values); err != nil {
			return nil, err
		}
	}
	return v, informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { v.failed(o.log, err) })
}

// caches reports whether v equals a new view of kind and resource.
func (v *optionalView[T]) caches(kind OptionalKind[T], resource string) bool {
	return v.resource == resource && v.kind.Version == kind.Version && v.kind.Shape == kind.Shape
}

// maxFailures is how often the initial list may fail before HasSynced stops waiting
// for the kind.
const maxFailures = 3

// failed records that list or watch failed. If the kind is no longer served, the
// next discovery finds that out.
func (v *optionalView[T]) failed(log *zap.Logger, err error) {
	log = log.With(zap.Stringer("resource", v.gvr().GroupResource()), zap.Error(err))
	if v.HasSynced() || apierrors.IsNotFound(err) {
		log.Debug("watch ended, retrying")
		return
	}
	if v.failures.Add(1) < maxFailures && !apierrors.IsForbidden(err) {
		return
	}
	switch {
	case v.refused.Swap(true):
	case v.kind.MetadataOnly:
		log.Info("cannot read a kind that controls workloads, so their topmost owner is not known; grant list and watch if needed")
	default:
		log.Warn("cannot read kind; ignoring it until a retry succeeds; if permissions are missing, grant list, watch and patch")
	}
}

func (v *optionalView[T]) status() KindStatus {
	switch {
	case v.HasSynced():
		return KindFull
	case v.refused.Load():
		return KindRefused
	default:
		return KindFilling
	}
}

func (v *optionalView[T]) gvr() schema.GroupVersionResource {
	return v.kind.GroupVersion().WithResource(v.resource)
}

// isAwaited implements setView: nobody waits for a kind that cannot be read.
func (v *optionalView[T]) isAwaited() bool { return v.status() != KindRefused }

// Statuses returns a metric with the status of every wanted kind.
func (o *Optional[T]) Statuses(name, help string) prometheus.Collector {
	return statusCollector[T]{o, prometheus.NewDesc(name, help, []string{"kind", "standing"}, nil)}
}

type statusCollector[T metav1.Object] struct {
	optional *Optional[T]
	desc     *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (s statusCollector[T]) Describe(into chan<- *prometheus.Desc) { into <- s.desc }

// Collect implements prometheus.Collector.
func (s statusCollector[T]) Collect(into chan<- prometheus.Metric) {
	for _, kind := range s.optional.wanted() {
		status := s.optional.Status(kind.GroupKind())
		into <- prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, 1, kind.GroupKind().String(), string(status))
	}
}
