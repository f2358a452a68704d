package survey

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/sync/delivery"
)

// DeliveriesName is the ConfigMap in Headwater's own namespace that holds the users'
// requests about deliveries: for each rule name, Requests in JSON. It is not the one
// of approvals, so that RBAC can grant the one without the other.
const DeliveriesName = "headwater-deliveries"

// Requests are requests about the deliveries of one rule, by source.
type Requests map[string]delivery.Request

// Empty reports whether r requests nothing.
func (r Requests) Empty() bool { return len(r) == 0 }

// StoredRequests is the cached content of that ConfigMap.
type StoredRequests = Recorded[Requests]

// requests reads the ConfigMap of requests from a cache.
type requests struct{ *records[Requests] }

// Answer deletes request, which was done, or stores why it was refused, unless another one about
// that source took its place.
func (r *requests) Answer(ctx context.Context, rule, source string, request delivery.Request) error {
	return ChangeRequests(ctx, r.client, r.Ref.Namespace, rule, func(stored Requests) {
		switch {
		case !stored[source].Equal(request):
		case request.Refused != "":
			stored[source] = request
		default:
			delete(stored, source)
		}
	})
}

// Forget deletes the requests of rule.
func (r *requests) Forget(ctx context.Context, rule string) error {
	return ChangeRequests(ctx, r.client, r.Ref.Namespace, rule, func(stored Requests) { clear(stored) })
}

// ChangeRequests applies change to the requests of rule that the API server holds; see
// changeEntry.
func ChangeRequests(ctx context.Context, client kubernetes.Interface, ownNamespace, rule string, change func(Requests)) error {
	return changeEntry(ctx, client, ownNamespace, DeliveriesName, rule, func(stored Requests) Requests {
		if stored == nil {
			stored = Requests{}
		}
		change(stored)
		return stored
	})
}

// KeepRequestConfigMaps creates the ConfigMaps of approvals and of requests while they
// do not exist, and recreates those that are immutable, until ctx ends: no user has the
// permission to create or delete them. Without owner, it creates none.
func (o *Reader) KeepRequestConfigMaps(ctx context.Context, owner *kube.Owner, log *zap.Logger) error {
	woken := loop.NewWake()
	subscribe := func(all *informers.Subscriptions) {
		all.Require(o.Approvals.View.OnChange(func(informers.Change[*StoredApprovals]) { woken.Notify() }))
		all.Require(o.Requests.View.OnChange(func(informers.Change[*StoredRequests]) { woken.Notify() }))
	}
	step := func(ctx context.Context) (time.Duration, error) {
		return 0, errors.Join(o.Approvals.release(ctx, log), o.Requests.release(ctx, log), o.createRequestConfigMaps(ctx, owner))
	}
	return o.Caches.Follow(ctx, subscribe, loop.Loop{Wake: woken, Clock: clock.RealClock{}, Log: log, Step: step}.Run)
}

func (o *Reader) createRequestConfigMaps(ctx context.Context, owner *kube.Owner) error {
	approved := o.Approvals.All()
	if approved != nil && o.Requests.All() != nil {
		return nil
	}
	if err := owner.Installed(ctx); err != nil {
		return err
	}
	if approved == nil {
		if err := o.Approvals.create(ctx, nil); err != nil {
			return err
		}
	}
	if o.Requests.All() != nil {
		return nil
	}
	// Earlier releases stored requests beside approvals. Those that wait at the upgrade
	// move, once: later on, who may only approve must not steer a delivery.
	waiting := map[string]string{}
	for rule, approval := range approved {
		if len(approval.Deliveries) > 0 {
			waiting[rule] = string(approval.Deliveries)
		}
	}
	if err := o.Requests.create(ctx, waiting); err != nil {
		return err
	}
	for rule := range waiting {
		written := func(stored Approval) Approval { return stored } // without the requests
		if err := ChangeApproval(ctx, o.Approvals.client, o.Approvals.Ref.Namespace, rule, written); err != nil {
			return err
		}
	}
	return nil
}
