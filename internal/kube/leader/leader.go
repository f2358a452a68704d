package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// LeaseName is the name of the leader's Lease in Headwater's own namespace.
const LeaseName = "headwater"

// The timings of kube-controller-manager, except RetryPeriod (1 s instead of 2 s).
// A standby polls every 1 to 2.2 retry periods, so a shorter period keeps failover
// below 20 s.
const (
	DefaultLeaseDuration = 15 * time.Second
	// MinLeaseDuration leaves a leader three attempts to renew.
	MinLeaseDuration = 5 * time.Second
	RetryPeriod      = time.Second
	// releaseTimeout bounds how long a graceful stop waits for the release.
	releaseTimeout = 2 * time.Second
)

// RenewDeadline is how long a leader tries to renew a lease of that duration. Then it
// stops, before the lease ends.
func RenewDeadline(lease time.Duration) time.Duration { return lease * 2 / 3 }

// errLeaseLost ends the process, because another replica may write by now.
var errLeaseLost = errors.New("lost the leader lease")

// Runnable is work that only the leader does. Run blocks until ctx ends.
type Runnable struct {
	Name string
	Run  func(ctx context.Context) error
}

// Leader runs Runnables while it holds the lease.
type Leader struct {
	// Doubt, if set before Run, returns why what the leader reports may be old; empty if it
	// is not. Who reads the Lease as a heartbeat reads it too.
	Doubt func() string

	client    kubernetes.Interface
	namespace string
	lease     time.Duration
	log       *zap.Logger
	leading   prometheus.Gauge
	known     atomic.Pointer[election]
	lock      atomic.Pointer[lease]
	acquired  atomic.Int64
}

// election is the latest leader that this replica observed.
type election struct {
	leader string
	self   bool
}

// New returns a Leader with its Lease in namespace; the Lease lasts for the duration
// lease if nobody renews it. If lease is 0, it leads immediately and without a Lease;
// use that for a single replica only.
func New(client kubernetes.Interface, namespace string, lease time.Duration, registry *prometheus.Registry, log *zap.Logger) *Leader {
	return &Leader{
		client: client, namespace: namespace, lease: lease, log: log.Named("leader"),
		leading: promauto.With(registry).NewGauge(prometheus.GaugeOpts{
			Name: "headwater_leader", Help: "1 while this replica is the leader, the only one that writes.",
		}),
	}
}

// Run waits for the lease and runs work until ctx ends. It returns the first error
// of any Runnable, errLeaseLost, or why it cannot go on.
func (l *Leader) Run(ctx context.Context, work []Runnable) error {
	if l.lease == 0 {
		return l.lead(ctx, work)
	}
	identity, err := identity()
	if err != nil {
		return err
	}
	return l.campaign(ctx, identity, work)
}

// campaign stops the work before it releases the lease, so that two leaders never
// write at the same time. The elector's own ReleaseOnCancel is off: on a dead
// connection it would try to release for longer than the lease lasts, and end the
// work only afterwards.
func (l *Leader) campaign(ctx context.Context, identity string, work []Runnable) error {
	electionCtx, resign := context.WithCancelCause(context.WithoutCancel(ctx))
	defer resign(nil)
	lock := &lease{duration: l.lease, lost: func() { resign(errLeaseLost) }, Interface: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: l.namespace, Name: LeaseName},
		Client:     &leases{LeaseInterface: l.client.CoordinationV1().Leases(l.namespace), restored: resign, doubt: l.Doubt, acquired: &l.acquired},
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}}
	l.lock.Store(lock)
	done := make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: LeaseName,
		LeaseDuration: l.lease, RenewDeadline: RenewDeadline(l.lease), RetryPeriod: RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leaseCtx context.Context) {
				workCtx, stop := context.WithCancel(ctx)
				defer context.AfterFunc(leaseCtx, stop)()
				done <- l.lead(fenced(workCtx, lock.held, func() { stop(); lock.lost() }), work)
				if leaseCtx.Err() == nil {
					resign(nil)
				}
			},
			OnStoppedLeading: func() {},
			OnNewLeader: func(leader string) {
				l.known.Store(&election{leader, leader == lock.Identity()})
				l.log.Info("leader elected", zap.String("leader", leader), zap.Bool("self", leader == lock.Identity()))
			},
		},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	defer context.AfterFunc(ctx, func() {
		if !elector.IsLeader() {
			resign(nil)
		}
	})()
	elector.Run(electionCtx)
	if cause := context.Cause(electionCtx); ctx.Err() == nil && !errors.Is(cause, context.Canceled) {
		return cmp.Or(cause, errLeaseLost)
	}
	select {
	case err = <-done:
		l.release(context.WithoutCancel(ctx), lock)
		return err
	default:
		return nil
	}
}

// release gives up the lease, so that the next leader need not wait for it to
// expire.
func (l *Leader) release(ctx context.Context, lock resourcelock.Interface) {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	held, _, err := lock.Get(ctx)
	if err == nil && held.HolderIdentity == lock.Identity() {
		now := metav1.Now()
		err = lock.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaderTransitions: held.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now,
		})
	}
	if err != nil {
		l.log.Warn("lease not released; the next leader waits until it expires", zap.Error(err))
	}
}

// Known returns the pod name of the latest leader that this replica observed, and
// whether it is this replica. pod is empty before an election and without one.
// unconfirmed is zero, unless nobody was seen to renew the lease for twice its duration:
// then it is since when.
func (l *Leader) Known() (pod string, self bool, unconfirmed time.Time) {
	if lock := l.lock.Load(); lock != nil {
		if seen := lock.seen.Load(); seen != nil && time.Since(*seen) > 2*l.lease {
			unconfirmed = *seen
		}
	}
	known := l.known.Load()
	if known == nil {
		return "", false, unconfirmed
	}
	pod, _, _ = strings.Cut(known.leader, afterHost)
	return pod, known.self, unconfirmed
}

// lead runs every Runnable until one fails or ctx ends, and waits for all.
func (l *Leader) lead(ctx context.Context, work []Runnable) error {
	l.leading.Set(1)
	defer l.leading.Set(0)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, runnable := range work {
		all.Go(func() {
			if err := runnable.Run(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", runnable.Name, err))
			}
		})
	}
	all.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// afterHost separates the pod name from the random part of an identity. Pod names
// never contain it.
const afterHost = "_"

func identity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("leader identity: %w", err)
	}
	return host + afterHost + string(uuid.NewUUID()), nil
}
