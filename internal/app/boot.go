package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/kube/leader"
	"github.com/headwater-k8s/headwater/internal/memory"
	"github.com/headwater-k8s/headwater/internal/serve"
	"github.com/headwater-k8s/headwater/protect"
)

// boot brings the process up step by step, retrying for ever what can heal,
// and then keeps it running until its context ends.
type boot struct {
	settings    Settings
	clients     *kube.Clients
	caches      *informers.Caches
	key         *digestkey.Key
	events      *events.Recorder
	leader      *leader.Leader
	identity    *protect.Identity
	reloader    *reloader
	permissions []kube.Permission
	replica     []leader.Runnable
	leaderWork  []leader.Runnable
	log         *zap.Logger

	mu    sync.Mutex
	state error
}

var errStarting = errors.New("starting")

// requestTimeout bounds each request made while starting.
const requestTimeout = 10 * time.Second

// retries grow from a quarter of a second to ten.
func retries() wait.Backoff {
	return wait.Backoff{Duration: 250 * time.Millisecond, Factor: 2, Steps: 7, Cap: 10 * time.Second}
}

// check is the readiness of everything that boot brings up.
func (b *boot) check() serve.Check {
	return serve.Check{Name: "cluster", Ready: func() error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.state != nil {
			return b.state
		}
		if pending := b.caches.Pending(); len(pending) > 0 {
			return fmt.Errorf("still reading %s", strings.Join(pending, ", "))
		}
		return nil
	}}
}

func (b *boot) setState(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state = err
}

// run returns nil when ctx ends, or what makes going on senseless.
func (b *boot) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{b.identify, b.checkPermissions, b.checkNamespace, b.key.Load} {
		if err := b.untilDone(ctx, step); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	// The webhook answers from the caches until it is drained, so they outlive
	// the work.
	cacheCtx, stopCaches := context.WithCancel(context.WithoutCancel(ctx))
	defer b.caches.Wait()
	var telling sync.WaitGroup
	defer telling.Wait()
	defer stopCaches()
	telling.Go(func() { b.events.Run(cacheCtx) })
	if err := b.reloader.trackSources(cacheCtx); err != nil {
		return err
	}
	b.caches.Start(cacheCtx)
	b.setState(nil)
	return b.work(ctx, cacheCtx)
}

// work runs what every replica does, and the leader's work once the caches
// are full, until ctx ends or one of them fails.
func (b *boot) work(ctx, cacheCtx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all := append([]leader.Runnable{
		{Name: "configuration", Run: func(ctx context.Context) error { b.reloader.run(ctx, cacheCtx); return nil }},
		{Name: "leader", Run: b.lead},
	}, b.replica...)
	failures := make(chan error, len(all))
	var running sync.WaitGroup
	for _, runnable := range all {
		running.Go(func() {
			if err := runnable.Run(ctx); err != nil {
				failures <- err
				cancel()
			}
		})
	}
	running.Wait()
	select {
	case err := <-failures:
		return err
	default:
		return nil
	}
}

func (b *boot) lead(ctx context.Context) error {
	if !b.caches.AwaitFull(ctx, nil) {
		return nil
	}
	// Not earlier: the first lists leave much garbage, which would become resident.
	memory.KeepMinimumHeap()
	return b.leader.Run(ctx, b.leaderWork)
}

// untilDone repeats step until it succeeds, ctx ends or it fails for good.
func (b *boot) untilDone(ctx context.Context, step func(context.Context) error) error {
	backoff := retries()
	for ctx.Err() == nil {
		stepCtx, cancel := context.WithTimeout(ctx, requestTimeout)
		err := step(stepCtx)
		cancel()
		var fatal kube.FatalError
		if err == nil || errors.As(err, &fatal) {
			return err
		}
		b.setState(err)
		b.log.Warn("not ready, retrying", zap.Error(err))
		select {
		case <-ctx.Done():
		case <-time.After(backoff.Step()):
		}
	}
	return nil
}

func (b *boot) identify(ctx context.Context) error {
	user, err := kube.WhoAmI(ctx, b.clients)
	if err != nil {
		return err
	}
	b.identity.Set(user)
	b.log.Info("connected to the cluster", zap.String("server", b.clients.Host), zap.String("user", user))
	return nil
}

func (b *boot) checkPermissions(ctx context.Context) error {
	return kube.CheckPermissions(ctx, b.clients.Typed, b.identity.Name(), "headwater", b.permissions)
}

func (b *boot) checkNamespace(ctx context.Context) error {
	_, err := b.clients.Typed.CoreV1().Namespaces().Get(ctx, b.settings.Namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("namespace %s, Headwater's own, does not exist; create it, or name another with --headwater-namespace", b.settings.Namespace)
	}
	if err != nil {
		return fmt.Errorf("look up namespace %s: %w", b.settings.Namespace, err)
	}
	return nil
}
