package sync

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/kube/leader"
	"github.com/headwater-k8s/headwater/internal/live"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/queue"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/deliverer"
	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Module provides the sync controller as work for the leader.
var Module = fx.Module("sync",
	fx.Decorate(func(log *zap.Logger) *zap.Logger { return log.Named("sync") }),
	fx.Provide(newResult),
)

// Options are the module's process settings.
type Options struct {
	// Workers is the number of clones written at once.
	Workers int
	// Namespace is Headwater's own.
	Namespace string
	// Policies are the names of the admission policies that Headwater registers.
	// A write that one of them denies shortly after a change of leader is retried.
	Policies []string
}

// params is what newResult needs.
type params struct {
	fx.In

	Options   Options
	Live      *rules.Live[spec.Rule]
	Safety    *live.Value[spec.Safety]
	Clients   *kube.Clients
	Caches    *informers.Caches
	Writer    *kube.Writer
	Key       *digestkey.Key
	Revisions *revisions.View
	Process   *revisions.Process
	Events    *events.Recorder
	Registry  *prometheus.Registry
	Log       *zap.Logger
	Observer  Observer `optional:"true"`
}

// result is what newResult provides.
type result struct {
	fx.Out

	View        *View
	Leader      []leader.Runnable `group:"leader,flatten"`
	Permissions []kube.Permission `group:"permissions,flatten"`
}

// newResult allocates the controller. The controller starts when the leader runs it.
func newResult(p params) (result, error) {
	observer, err := survey.NewReader(p.Live, p.Clients, p.Caches, p.Revisions, p.Options.Namespace, p.Log)
	if err != nil {
		return result{}, err
	}
	maxFraction := func() float64 { return *p.Safety.Load().MaxDeleteFraction }
	c := &controller{
		Reader: observer, client: p.Clients.Typed, ownNamespace: p.Options.Namespace,
		writer: p.Writer, key: p.Key, events: p.Events, metrics: newMetrics(p.Registry), log: p.Log, now: time.Now,
		observer: orNoop(p.Observer), policies: p.Options.Policies,
		maxFraction: maxFraction, guard: progress.NewGuard(observer.MayRemove, func(rule string) float64 { return observer.MaxDeleteFraction(rule, maxFraction()) }),
		progress: progress.NewTracker(progress.NameStaysFree),
	}
	observer.Failure = c.progress.Failure
	if err := c.connect(queue.Options{Name: "sync", Workers: p.Options.Workers, Log: p.Log, Registry: p.Registry}); err != nil {
		return result{}, err
	}
	deliveries := deliverer.New(deliverer.Params{
		Reader: observer, OwnNamespace: p.Options.Namespace, Writer: p.Writer, Process: p.Process,
		Events: p.Events, Registry: p.Registry, Log: p.Log,
	})
	view := newView(c, deliveries)
	if err := p.Registry.Register(view.metrics); err != nil {
		return result{}, fmt.Errorf("register metrics: %w", err)
	}
	return result{
		View: view,
		Leader: []leader.Runnable{
			{Name: "sync", Run: c.Run},
			{Name: "delivery", Run: deliveries.Run},
			{Name: "request ConfigMaps", Run: func(ctx context.Context) error { return observer.KeepRequestConfigMaps(ctx, p.Clients.Owner, p.Log) }},
		},
		Permissions: permissions(p.Clients.Scope, len(p.Live.Load().All()) > 0),
	}, nil
}

// permissions returns what the module needs for the rules that are in force at
// the start. Without rules that clone, it only reads.
func permissions(scope kube.Scope, clones bool) []kube.Permission {
	read := []string{"list", "watch"}
	needed := []kube.Permission{{Resource: "namespaces", Verbs: read, For: "know which namespaces there are", Cached: true}}
	for _, kind := range object.Kinds {
		if !scope.Reads(kind.Resource()) {
			continue
		}
		verbs, why := read, "know which objects there are"
		if clones {
			verbs, why = append(slices.Clone(read), "create", "update", "delete", "get"), "keep clones right"
		}
		needed = append(needed, kube.Permission{Resource: kind.Resource(), Verbs: verbs, For: why, Cached: true})
	}
	return needed
}
