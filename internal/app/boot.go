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
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/kube/leader"
	"github.com/headwater-k8s/headwater/internal/serve"
	"github.com/headwater-k8s/headwater/protect/decide"
)

// boot brings the process up step by step, retrying for ever what can heal,
// and then keeps it running until its context ends.
type boot struct {
	in bootParams

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
		if awaited := b.in.Caches.Awaited(); len(awaited) > 0 {
			return fmt.Errorf("still reading %s", strings.Join(awaited, ", "))
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
	for _, step := range []func(context.Context) error{b.identify, b.checkPermissions, b.checkNamespace, b.in.Key.Load, b.in.Reloader.checkStart} {
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
	defer b.in.Caches.Wait()
	var telling sync.WaitGroup
	defer telling.Wait()
	defer stopCaches()
	telling.Go(func() { b.in.Events.Run(cacheCtx) })
	if err := b.in.Reloader.trackSources(cacheCtx); err != nil {
		return err
	}
	b.in.Caches.Start(cacheCtx)
	b.setState(nil)
	return b.work(ctx, cacheCtx)
}

// work runs what every replica does, and the leader's work once the caches
// are read, until ctx ends or one of them fails.
func (b *boot) work(ctx, cacheCtx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all := append([]leader.Runnable{
		{Name: "configuration", Run: func(ctx context.Context) error { b.in.Reloader.run(ctx, cacheCtx); return nil }},
		{Name: "leader", Run: b.lead},
	}, b.in.Replica...)
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
	if !b.in.Caches.AwaitRead(ctx, &informers.Subscriptions{}) {
		return nil
	}
	return b.in.Leader.Run(ctx, b.in.LeaderWork)
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
		b.in.Log.Warn("not ready, retrying", zap.Error(err))
		select {
		case <-ctx.Done():
		case <-time.After(backoff.Step()):
		}
	}
	return nil
}

func (b *boot) identify(ctx context.Context) error {
	user, err := kube.WhoAmI(ctx, b.in.Clients)
	if err != nil {
		return err
	}
	b.in.Identity.Set(user.Username)
	b.in.Log.Info("connected to the cluster", zap.String("server", b.in.Clients.Host), zap.String("user", user.Username))
	switch isAccount := decide.IsServiceAccount(user.Username); {
	case !isAccount:
		b.in.Log.Warn("this user is no service account: the API server takes everybody of this name for Headwater, also by impersonation",
			zap.String("user", user.Username))
	case user.UID == "":
		b.in.Log.Warn("the credentials impersonate a service account: the API server does not take these requests for Headwater's; use a token of the account",
			zap.String("user", user.Username))
	}
	return nil
}

// checkPermissions passes over what cannot be listed or watched: rules that need it wait; see
// informers.Caches.CannotRead.
func (b *boot) checkPermissions(ctx context.Context) error {
	err := kube.CheckPermissions(ctx, b.in.Clients.Typed, b.in.Identity.Name(), "headwater", b.in.Permissions)
	var missing kube.MissingError
	if errors.As(err, &missing) && missing.OnlyOfCaches() {
		b.in.Log.Error("rules that need what cannot be read wait until it can", zap.Error(err))
		return nil
	}
	return err
}

func (b *boot) checkNamespace(ctx context.Context) error {
	_, err := b.in.Clients.Typed.CoreV1().Namespaces().Get(ctx, b.in.Settings.Namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("namespace %s, Headwater's own, does not exist; create it, or name another with --headwater-namespace", b.in.Settings.Namespace)
	}
	if err != nil {
		return fmt.Errorf("look up namespace %s: %w", b.in.Settings.Namespace, err)
	}
	return nil
}
