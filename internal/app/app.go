package app

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/fx"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/kube/leader"
	"github.com/headwater-k8s/headwater/internal/live"
	"github.com/headwater-k8s/headwater/internal/notify"
	"github.com/headwater-k8s/headwater/internal/page"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/internal/rulestatus/facts"
	"github.com/headwater-k8s/headwater/internal/rulestatus/keeper"
	"github.com/headwater-k8s/headwater/internal/serve"
	"github.com/headwater-k8s/headwater/protect"
	"github.com/headwater-k8s/headwater/protect/manifests"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	"github.com/headwater-k8s/headwater/reload"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/sync"
	syncspec "github.com/headwater-k8s/headwater/sync/spec"
)

// Options is the whole graph. It is static: a module that no rule asks for is
// in it all the same and does nothing.
func Options(settings Settings, loaded *config.Config, clients *kube.Clients, logger *zap.Logger) fx.Option {
	return fx.Options(
		core(settings, loaded, clients, logger),
		sync.Module,
		protect.Module,
		reload.Module,
		fx.Invoke(func(r *prometheus.Registry, c *informers.Caches) { r.MustRegister(c) }, startServer, startBoot),
	)
}

// core is the graph without the modules.
func core(settings Settings, loaded *config.Config, clients *kube.Clients, logger *zap.Logger) fx.Option {
	return fx.Options(
		fx.NopLogger, // errors are returned, and printed once by main
		fx.Supply(settings, loaded, clients, logger),
		fx.Provide(
			func() *failure { return &failure{} },
			newRegistry,
			newLiveRules,
			func(c *config.Config) *live.Value[protectspec.Settings] { return live.New(c.Protect) },
			func() *protect.Identity { return &protect.Identity{} },
			func(s Settings) sync.Options {
				return sync.Options{Workers: s.Workers, Namespace: s.Namespace, Policies: manifests.PolicyNames()}
			},
			func(c *config.Config) *live.Value[syncspec.Safety] { return live.New(c.Safety) },
			func(c *config.Config) *live.Value[*reloadspec.Compiled] { return live.New(c.Reload.Compile()) },
			func(s Settings) reload.Options { return reload.Options{Workers: s.Workers, Namespace: s.Namespace} },
			func(s Settings) protect.Options {
				return protect.Options{
					Namespace: s.Namespace, WebhookURL: s.WebhookURL, WebhookAddress: s.WebhookAddress,
					Drain: s.WebhookDrain, Settle: s.WebhookCASettle, Configuration: ownConfiguration(s.Namespace),
				}
			},
			newDigestKey,
			func(c *kube.Clients, r *prometheus.Registry, l *zap.Logger) *events.Recorder {
				return events.NewRecorder(c.Typed, r, l)
			},
			func(c *kube.Clients, s Settings, r *prometheus.Registry, l *zap.Logger) *leader.Leader {
				return leader.New(c.Typed, s.Namespace, s.lease(), r, l)
			},
			newNotifier,
			informers.NewCaches,
			kube.NewWriter,
			newReloader,
			newLastValid,
			newBoot,
			newFeed,
			func() *keeper.Touched { return &keeper.Touched{} },
			newObservers,
			newKeeper,
			newPage,
			newServer,
		),
	)
}

// keptKey is the key of digests, and what has the next start find it.
type keptKey struct {
	fx.Out

	Key    *digestkey.Key
	Leader leader.Runnable `group:"leader"`
}

func newDigestKey(c *kube.Clients, s Settings, l *zap.Logger) keptKey {
	key := digestkey.New(c.Typed, s.Namespace)
	return keptKey{Key: key, Leader: informers.KeepDigestKey(key, clock.RealClock{}, l)}
}

// notifying is the Notifier, and what runs of it on every replica and on the
// leader.
type notifying struct {
	fx.Out

	Notifier *notify.Notifier
	Replica  leader.Runnable `group:"replica"`
	Leader   leader.Runnable `group:"leader"`
}

func newNotifier(c *config.Config, events *events.Recorder, registry *prometheus.Registry, l *zap.Logger) notifying {
	n := notify.New(c.Notify, clock.RealClock{}, registry, l)
	events.Subscribe(n.Hear)
	return notifying{
		Notifier: n,
		Replica:  leader.Runnable{Name: "notifications", Run: n.Run},
		Leader:   leader.Runnable{Name: "notifications of all", Run: n.Lead},
	}
}

type keeperParams struct {
	fx.In

	Clients  *kube.Clients
	Reloader *reloader
	Kept     *lastValid
	Sync     *sync.View
	Protect  *protect.View
	Reload   *reload.View
	Touched  *keeper.Touched
	Log      *zap.Logger
}

type keptStatuses struct {
	fx.Out

	Leader leader.Runnable `group:"leader"`
}

// newKeeper has the leader keep a RuleStatus for each rule.
func newKeeper(p keeperParams) keptStatuses {
	k := keeper.New(p.Clients.Dynamic, facts.Source{
		Sync: p.Sync, Protect: p.Protect, Reload: p.Reload,
		SyncRules: p.Reloader.sync, ProtectRules: p.Reloader.protect, ReloadRules: p.Reloader.reload,
		Revision: func() string { return *p.Kept.revision.Load() }, InvalidAt: p.Reloader.invalidAt, Why: reasonToWait,
	}, p.Touched, clock.RealClock{}, p.Log)
	return keptStatuses{Leader: leader.Runnable{Name: "rule statuses", Run: k.Run}}
}

func newRegistry(clients *kube.Clients) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfo())
	if clients.Requests != nil {
		registry.MustRegister(clients.Requests)
	}
	return registry
}

// liveRules is the rule set in force, as each module sees it.
type liveRules struct {
	fx.Out

	Sync    *rules.Live[syncspec.Rule]
	Protect *rules.Live[protectspec.Rule]
	Reload  *rules.Live[reloadspec.Rule]
}

func newLiveRules(loaded *config.Config, settings Settings) (config.Sets, liveRules, error) {
	sets, err := loaded.Compile(settings.Namespace)
	if err != nil {
		return sets, liveRules{}, err
	}
	return sets, liveRules{
		Sync:    rules.NewLive(sets.Sync),
		Protect: rules.NewLive(sets.Protect),
		Reload:  rules.NewLive(sets.Reload),
	}, nil
}

type bootParams struct {
	fx.In

	Settings    Settings
	Clients     *kube.Clients
	Caches      *informers.Caches
	Key         *digestkey.Key
	Events      *events.Recorder
	Leader      *leader.Leader
	Identity    *protect.Identity
	Reloader    *reloader
	Permissions []kube.Permission `group:"permissions"`
	Replica     []leader.Runnable `group:"replica"`
	LeaderWork  []leader.Runnable `group:"leader"`
	Log         *zap.Logger
}

type bootResult struct {
	fx.Out

	Boot  *boot
	Check serve.Check `group:"checks"`
}

func newBoot(p bootParams) bootResult {
	b := &boot{
		settings: p.Settings, clients: p.Clients, caches: p.Caches, key: p.Key, events: p.Events,
		leader: p.Leader, identity: p.Identity, reloader: p.Reloader,
		permissions: append(p.Permissions, ownPermissions(p.Settings)...),
		replica:     p.Replica, leaderWork: p.LeaderWork,
		log: p.Log.Named("boot"), state: errStarting,
	}
	return bootResult{Boot: b, Check: b.check()}
}

func ownPermissions(s Settings) []kube.Permission {
	permissions := []kube.Permission{
		{Resource: "namespaces", Verbs: []string{"get"}, Name: s.Namespace, For: "find its own namespace"},
		{Resource: "secrets", Verbs: []string{"get"}, Namespace: s.Namespace, Name: digestkey.SecretName, For: "read the key of its digests"},
		{Resource: "secrets", Verbs: []string{"list", "watch"}, Namespace: s.Namespace, Name: digestkey.SecretName, For: "notice that the key of its digests is gone"},
		{Resource: "secrets", Verbs: []string{"create"}, Namespace: s.Namespace, For: "make the key of its digests, and put it back"},
		{Resource: "configmaps", Verbs: []string{"get"}, Namespace: s.Namespace, Name: config.ConfigMapName, For: "know whether the configuration comes from it"},
		{Resource: "configmaps", Verbs: []string{"get", "update"}, Namespace: s.Namespace, Name: config.LastValidName, For: "keep the last valid configuration for commands"},
		{Resource: "configmaps", Verbs: []string{"create"}, Namespace: s.Namespace, For: "keep the last valid configuration for commands"},
		{Resource: "events", Group: "events.k8s.io", Verbs: []string{"create", "get", "patch"}, For: "record Events"},
	}
	permissions = append(permissions, keeper.Permissions()...)
	if s.MetricsAuth {
		const why = "ask who reads /metrics and the page, and whether they may"
		permissions = append(permissions,
			kube.Permission{Group: "authentication.k8s.io", Resource: "tokenreviews", Verbs: []string{"create"}, For: why},
			kube.Permission{Group: "authorization.k8s.io", Resource: "subjectaccessreviews", Verbs: []string{"create"}, For: why})
	}
	if s.LeaderElect {
		const group, resource, why = "coordination.k8s.io", "leases", "elect a leader"
		permissions = append(permissions,
			kube.Permission{Group: group, Resource: resource, Namespace: s.Namespace, Verbs: []string{"create"}, For: why},
			kube.Permission{Group: group, Resource: resource, Namespace: s.Namespace, Name: leader.LeaseName, Verbs: []string{"get", "update"}, For: why})
	}
	return permissions
}

type serverParams struct {
	fx.In

	Settings    Settings
	Clients     *kube.Clients
	Registry    *prometheus.Registry
	Checks      []serve.Check `group:"checks"`
	Certificate serve.Certificate
	Page        *page.Page
	Log         *zap.Logger
}

func newServer(p serverParams) *serve.Server {
	var gate *serve.Gate
	if p.Settings.MetricsAuth {
		gate = serve.NewGate(p.Clients.Typed, p.Certificate, clock.RealClock{}, p.Log)
	}
	var mounts []serve.Mount
	if p.Page != nil {
		mounts = append(mounts, serve.Mount{Path: page.Path, Handler: p.Page, Close: p.Page.Close})
	}
	return serve.New(p.Settings.MetricsAddress, p.Registry, p.Checks, gate, p.Log, mounts...)
}

func startServer(lifecycle fx.Lifecycle, server *serve.Server) {
	lifecycle.Append(fx.StartStopHook(server.Start, server.Stop))
}

// startBoot schedules the bring-up; fx's start context is too short to wait
// for a cluster.
func startBoot(lifecycle fx.Lifecycle, b *boot, failure *failure, shutdowner fx.Shutdowner) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	lifecycle.Append(fx.StartStopHook(
		func() {
			go func() {
				defer close(done)
				if err := b.run(ctx); err != nil {
					failure.set(err)
					if err := shutdowner.Shutdown(fx.ExitCode(1)); err != nil {
						b.log.Error("shut down", zap.Error(err))
					}
				}
			}()
		},
		func(stopCtx context.Context) error {
			cancel()
			select {
			case <-done:
				return nil
			case <-stopCtx.Done():
				return stopCtx.Err()
			}
		},
	))
}
