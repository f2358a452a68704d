package leader

import (
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

// LeaseName is the Lease that the leader holds, in Headwater's own namespace.
const LeaseName = "headwater"

// The timing of kube-controller-manager, but for the pace: an elector that waits
// looks every 1 to 2.2 retries, so it sees the last renewal of a killed leader so
// much later, and as much later that the lease has ended since. All of it stays
// below 20 s. A leader that cannot renew stops before its lease ends. This is
// known outside for whoever compares.
const (
	LeaseDuration = 15 * time.Second
	RenewDeadline = 10 * time.Second
	RetryPeriod   = time.Second
	// releaseTimeout leaves a graceful stop most of its time.
	releaseTimeout = 2 * time.Second
)

// ErrLeaseLost ends the process: what the modules had in flight can no longer
// be trusted to be the only writer.
var errLeaseLost = errors.New("lost the leader lease")

// Runnable is work that only the leader does. Run blocks until ctx ends.
type Runnable struct {
	Name string
	Run  func(ctx context.Context) error
}

// Leader runs Runnables while it holds the lease.
type Leader struct {
	client    kubernetes.Interface
	namespace string
	elect     bool
	log       *zap.Logger
	leading   prometheus.Gauge
	known     atomic.Pointer[election]
}

// election is who leads, as this replica has heard, and whether it is itself.
type election struct {
	leader string
	self   bool
}

// NewLeader returns a Leader with its Lease in namespace. Without elect it
// leads at once and for ever, for a single replica.
func New(client kubernetes.Interface, namespace string, elect bool, registry *prometheus.Registry, log *zap.Logger) *Leader {
	return &Leader{
		client: client, namespace: namespace, elect: elect, log: log.Named("leader"),
		leading: promauto.With(registry).NewGauge(prometheus.GaugeOpts{
			Name: "headwater_leader", Help: "1 while this replica is the one that writes.",
		}),
	}
}

// Run waits for the lease and runs work until ctx ends. It returns the first
// error of any Runnable, or ErrLeaseLost.
func (l *Leader) Run(ctx context.Context, work []Runnable) error {
	if !l.elect {
		return l.lead(ctx, work)
	}
	identity, err := identity()
	if err != nil {
		return err
	}
	return l.campaign(ctx, &lease{Interface: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: l.namespace, Name: LeaseName},
		Client:     l.client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}}, work)
}

// campaign stops the work before it gives the lease back, so that two leaders
// never write at once. The elector must not give it back by itself: on a dead
// connection it would try to for longer than the lease lasts, and only then
// end the work.
func (l *Leader) campaign(ctx context.Context, lock *lease, work []Runnable) error {
	electionCtx, resign := context.WithCancelCause(context.WithoutCancel(ctx))
	defer resign(nil)
	lock.lost = func() { resign(errLeaseLost) }
	done := make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: LeaseName,
		LeaseDuration: LeaseDuration, RenewDeadline: RenewDeadline, RetryPeriod: RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leaseCtx context.Context) {
				workCtx, stop := context.WithCancel(ctx)
				defer context.AfterFunc(leaseCtx, stop)()
				done <- l.lead(fenced(workCtx, lock.held), work)
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
	if ctx.Err() == nil && (electionCtx.Err() == nil || errors.Is(context.Cause(electionCtx), errLeaseLost)) {
		return errLeaseLost
	}
	select {
	case err = <-done:
		l.release(context.WithoutCancel(ctx), lock)
		return err
	default:
		return nil
	}
}

// release gives the lease back, so that the next leader need not wait for its
// end.
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
		l.log.Warn("lease not given back, the next leader waits until it ends", zap.Error(err))
	}
}

// Known is the pod that leads, as far as this replica has heard, and whether it
// is this one. It is empty before an election, and without one.
func (l *Leader) Known() (pod string, self bool) {
	known := l.known.Load()
	if known == nil {
		return "", false
	}
	pod, _, _ = strings.Cut(known.leader, afterHost)
	return pod, known.self
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

// afterHost ends the name of the pod in an identity; no such name has it.
const afterHost = "_"

func identity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("leader identity: %w", err)
	}
	return host + afterHost + string(uuid.NewUUID()), nil
}
