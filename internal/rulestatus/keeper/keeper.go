package keeper

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/dedupe"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/internal/text"
)

const (
	// Interval is the minimum time between two writes of one status, and how often facts
	// that cost nothing are read.
	Interval = 5 * time.Second
	// soon is that time after a revision changed: people steer deliveries by what a status
	// says of them.
	soon = time.Second
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
	// Rules are the names of the rules in force.
	Rules() []string
	// Facts returns what is known of these rules, which need not be in force, or nothing
	// while that cannot be known. again is how long to wait for what is not in it yet.
	Facts(rules []string) (facts []*rulestatus.Facts, again time.Duration)
	// Follow has wake notified when clones changed since Facts was called, and calls revised
	// with the rule of a revision that changed.
	Follow(wake loop.Wake, revised func(rule string)) (stop func())
}

// recorder records Events about conditions that turn.
type recorder interface{ Record(event events.Event) }

// Keeper keeps the RuleStatuses of a cluster.
type Keeper struct {
	// Lost, if set before Run, reports whether RuleStatuses have not been watched for so long
	// that what the keeper has of them may be old. It is called only while it needs them.
	Lost func() bool

	dynamic dynamic.Interface
	client  dynamic.ResourceInterface
	source  source
	events  recorder
	clock   clock.Clock
	log     *zap.Logger
	wake    loop.Wake
	// revised has the rules of which a revision changed since Facts was called.
	revised sync.Map

	// Used only by the loop. written is when each status was last written, or that was
	// tried.
	view    *informers.View[*stored]
	written map[string]time.Time
	// inForce and former are where the current round of steps is among the rules that are in force,
	// and among those that only objects name.
	inForce, former int
	pruned          map[string]pruned
	turns           dedupe.Notes[turn]
	said            string
	// following is true while the kind is installed, as far as is known.
	following atomic.Bool
	// shown is view while it is kept current; nil otherwise.
	shown atomic.Pointer[informers.View[*stored]]

	// failures has the statuses that cannot be written, by rule, and "" while none can be
	// read; failing is the one that has lasted longest, nil if there is none.
	failures map[string]failure
	failing  atomic.Pointer[failure]
}

type failure struct {
	since time.Time
	err   error
}

const (
	// failsAfter is how long statuses cannot be written until that is a doubt, and maxDoubt
	// its length in bytes.
	failsAfter = 30 * time.Second
	maxDoubt   = 512
)

// Doubt returns why stored statuses may be old: they cannot be watched or written. It is
// empty while they can.
func (k *Keeper) Doubt() string {
	if k.following.Load() && k.Lost != nil && k.Lost() {
		return "RuleStatuses cannot be watched, so what others change in them stays; the leader's log says why"
	}
	f := k.failing.Load()
	if f == nil || k.clock.Since(f.since) < failsAfter {
		return ""
	}
	return text.Truncate(fmt.Sprintf("RuleStatuses cannot be written since %s: %v", f.since.UTC().Format(time.RFC3339), f.err), maxDoubt)
}

// noteResult records whether the status of rule could be written.
func (k *Keeper) noteResult(rule string, err error) {
	switch before, failed := k.failures[rule]; {
	case err == nil:
		delete(k.failures, rule)
	case failed:
		k.failures[rule] = failure{before.since, err}
	default:
		k.failures[rule] = failure{k.clock.Now(), err}
	}
	var longest *failure
	for _, f := range k.failures {
		if longest == nil || f.since.Before(longest.since) {
			longest = &f
		}
	}
	k.failing.Store(longest)
}

// New returns a Keeper. It works while Run runs.
func New(client dynamic.Interface, source source, events recorder, clock clock.Clock, log *zap.Logger) *Keeper {
	return &Keeper{dynamic: client, source: source, events: events, clock: clock, log: log.Named("rulestatus"), wake: loop.NewWake(), failures: map[string]failure{}}
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
	if apierrors.IsNotFound(err) { // there is nothing that could be old
		clear(k.failures)
		k.noteResult("", nil)
	} else {
		k.noteResult("", err)
	}
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
	k.warn(message, err)
}

// warn logs message, unless it was the last one.
func (k *Keeper) warn(message string, err error) {
	if message != k.said {
		k.said = message
		k.log.Warn(message, zap.Error(err))
	}
}

// follow watches the objects and keeps them until ctx ends or the kind is not
// installed any more.
func (k *Keeper) follow(ctx context.Context) error {
	k.following.Store(true)
	defer k.following.Store(false)
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
	k.shown.Store(k.view)
	defer k.shown.Store(nil)
	defer k.source.Follow(k.wake, func(rule string) {
		k.revised.Store(rule, nil)
		k.wake.Notify()
	})()
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
	k.written, k.pruned = map[string]time.Time{}, map[string]pruned{}
	informer := dynamicinformer.NewFilteredDynamicInformer(k.dynamic, rulestatus.GVR, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	view, err := informers.NewView("rulestatuses", informer, k.log, keep)
	k.view = view
	return err
}
