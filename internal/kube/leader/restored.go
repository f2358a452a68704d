package leader

import (
	"context"
	"fmt"
	"sync/atomic"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// leases notices from the Lease that the API server's state is an earlier one, as after a
// restore of etcd. Watches do not fail then: they wait for versions that the API server
// reaches much later, so caches follow nothing.
type leases struct {
	coordinationclient.LeaseInterface

	// latest is the resourceVersion of the latest answer; empty before one.
	latest string
	// restored is called with an error that says so.
	restored func(error)
	// doubt is Leader.Doubt, which each renewal writes down.
	doubt func() string
	// acquired is how many acquisitions the Lease shows that was written last.
	acquired *atomic.Int64
}

// DoubtAnnotation is the annotation of the Lease with what Leader.Doubt returned.
const DoubtAnnotation = mark.Domain + "doubt"

// Leases implements coordinationclient.LeasesGetter. Only one Lease is asked for.
func (l *leases) Leases(string) coordinationclient.LeaseInterface { return l }

// Get implements coordinationclient.LeaseInterface.
func (l *leases) Get(ctx context.Context, name string, options metav1.GetOptions) (*coordinationv1.Lease, error) {
	return l.check(l.LeaseInterface.Get(ctx, name, options))
}

// Create implements coordinationclient.LeaseInterface.
func (l *leases) Create(ctx context.Context, lease *coordinationv1.Lease, options metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return l.check(l.LeaseInterface.Create(ctx, lease, options))
}

// Update implements coordinationclient.LeaseInterface.
func (l *leases) Update(ctx context.Context, lease *coordinationv1.Lease, options metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	annotated := lease.DeepCopy()
	delete(annotated.Annotations, DoubtAnnotation)
	if l.doubt != nil {
		if why := l.doubt(); why != "" {
			metav1.SetMetaDataAnnotation(&annotated.ObjectMeta, DoubtAnnotation, why)
		}
	}
	times := noteAcquired(annotated)
	written, err := l.check(l.LeaseInterface.Update(ctx, annotated, options))
	if err == nil {
		l.acquired.Store(int64(times))
	}
	return written, err
}

// check compares found with the answer before. A quorum read or a write never returns an
// earlier version than the one before it.
func (l *leases) check(found *coordinationv1.Lease, err error) (*coordinationv1.Lease, error) {
	if err != nil {
		return found, err
	}
	if order, err := resourceversion.CompareResourceVersion(found.ResourceVersion, l.latest); err == nil && order < 0 {
		l.restored(fmt.Errorf("the API server went back to an earlier state, as after a restore of etcd: Lease %s/%s had resourceVersion %s and now has %s; "+
			"this process ends, so that the next one reads everything again", found.Namespace, found.Name, l.latest, found.ResourceVersion))
	}
	l.latest = found.ResourceVersion
	return found, nil
}
