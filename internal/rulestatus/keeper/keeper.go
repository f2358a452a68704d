package keeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
)

const (
	// Interval is the minimum time between two writes of one status, and how often facts
	// that cost nothing are read.
	Interval = 5 * time.Second
	// While the kind is not installed, the keeper looks for it after firstProbe, then after
	// twice as long each time, up to maxProbe. The API server serves a new kind only
	// seconds after it is created.
	firstProbe = 10 * time.Second
	maxProbe   = 10 * time.Minute
	syncedPoll = 50 * time.Millisecond
)

// errNotInstalled ends follow: the kind is not installed any more.
var errNotInstalled = errors.New("kind RuleStatus is not installed")

// source answers what the leader knows, from memory.
type source interface {
	// Working reports whether this replica reconciles, and Settled whether it has
	// reconciled everything once.
	Working() bool
	Settled() bool
	// Rules are the names of the rules in force, and RulesOf those that may clone to
	// target.
	Rules() []string
	RulesOf(target object.Ref) []string
	// Survey returns the facts of all clones of a rule, which need not be in force.
	Survey(rule string) *rulestatus.CloneFacts
	// Facts are what is known of a rule; clones are the result of an earlier Survey.
	Facts(rule string, clones *rulestatus.CloneFacts) *rulestatus.Facts
}

// Keeper keeps the RuleStatuses of a cluster.
type Keeper struct {
	dynamic dynamic.Interface
	client  dynamic.ResourceInterface
	source  source
	clock   clock.Clock
	log     *zap.Logger
	wake    loop.Wake
	// touched are the clones whose status may have changed.
	touched *Touched

	// Used only by the loop.
	view    *informers.View[*stored]
	records map[string]*record
	said    string
}

// New returns a Keeper. It works while Run runs.
func New(client dynamic.Interface, source source, touched *Touched, clock clock.Clock, log *zap.Logger) *Keeper {
	return &Keeper{
		dynamic: client, source: source, touched: touched, clock: clock, log: log.Named("rulestatus"), wake: loop.NewWake(),
	}
}

// Permissions are what the Keeper needs. Headwater works without them.
func Permissions() []kube.Permission {
	return []kube.Permission{{
		Group: rulestatus.Group, Resource: rulestatus.Resource, Verbs: []string{"list", "watch", "create", "update", "delete"},
		For: "report the state of rules", Optional: true,
	}}
}

// Run keeps the objects until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	k.client = k.dynamic.Resource(rulestatus.GVR)
	probe := firstProbe
	for ctx.Err() == nil {
		if k.attempt(ctx) {
			probe = firstProbe
		}
		select {
		case <-ctx.Done():
		case <-k.clock.After(probe):
		}
		probe = min(2*probe, maxProbe)
	}
	return nil
}

// attempt keeps the objects while the kind is installed. It reports whether it was.
func (k *Keeper) attempt(ctx context.Context) (installed bool) {
	_, err := k.client.List(ctx, metav1.ListOptions{Limit: 1})
	if installed = err == nil; installed {
		k.said = ""
		err = k.follow(ctx)
	}
	if ctx.Err() == nil {
		k.say(err)
	}
	return installed
}

// say logs why no status is kept, unless it did so already.
func (k *Keeper) say(err error) {
	message := "the state of rules is not reported as RuleStatus; retrying, every 10 minutes at least"
	switch {
	case apierrors.IsNotFound(err), errors.Is(err, errNotInstalled):
		message = "the kind RuleStatus is not installed, so the state of rules is not reported; the chart and deploy/crd.yaml install it, which Headwater notices within 10 minutes"
		err = nil
	case apierrors.IsForbidden(err):
		message = "permission to report the state of rules is missing; grant what deploy/rbac.yaml says of rulestatuses"
	}
	if message != k.said {
		k.said = message
		k.log.Warn(message, zap.Error(err))
	}
}

// follow watches the objects and keeps them until ctx ends or the kind is not
// installed any more.
func (k *Keeper) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := k.open(); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.view.Run(ctx)
	}()
	defer func() { cancel(nil); <-done }()
	synced := func(context.Context) (bool, error) { return k.view.HasSynced(), nil }
	if wait.PollUntilContextCancel(ctx, syncedPoll, true, synced) != nil {
		return ctx.Err()
	}
	k.touched.keeper.Store(k)
	defer k.touched.keeper.Store(nil)
	loop.Loop{Wake: k.wake, Clock: k.clock, Log: k.log, Step: func(ctx context.Context) (time.Duration, error) {
		again, err := k.step(ctx)
		if errors.Is(err, errNotInstalled) {
			cancel(errNotInstalled)
		}
		return again, err
	}}.Run(ctx)
	return context.Cause(ctx)
}

// open creates the cache of the objects, and forgets what an earlier one led to.
func (k *Keeper) open() error {
	k.records = map[string]*record{}
	informer := dynamicinformer.NewFilteredDynamicInformer(k.dynamic, rulestatus.GVR, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	view, err := informers.NewView("rulestatuses", informer, k.log, keep)
	if err != nil {
		return err
	}
	k.view = view
	err = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		k.log.Debug("watch of RuleStatuses ended, retrying", zap.Error(err))
	})
	if err != nil {
		return fmt.Errorf("watch RuleStatuses: %w", err)
	}
	return nil
}
