package app

import (
	"cmp"
	"context"
	"fmt"

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
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
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
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Options is the whole graph. It is static: a module that no rule asks for is
// in it all the same and does nothing.
func Options(settings Settings, begins *Started, clients *kube.Clients, logger *zap.Logger) fx.Option {
	return fx.Options(
		core(settings, begins, clients, logger),
		sync.Module,
		protect.Module,
		reload.Module,
		fx.Invoke(func(r *prometheus.Registry, c *informers.Caches) { r.MustRegister(c) }, startServer, startBoot),
	)
}

// What runs on every replica, and on the leader alone.
const ofReplica, ofLeader = `group:"replica"`, `group:"leader"`

// core is the graph without the modules.
func core(settings Settings, begins *Started, clients *kube.Clients, logger *zap.Logger) fx.Option {
	return fx.Options(
		fx.NopLogger, // errors are returned, and printed once by main
		fx.Supply(settings, begins, begins.Config, clients, logger),
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
			func(s Settings, kept *lastValid) (protect.Options, error) {
				settings, err := s.tls()
				return protect.Options{
					TLS:       settings,
					Namespace: s.Namespace, WebhookURL: s.WebhookURL, WebhookAddress: s.WebhookAddress,
					Drain: s.WebhookDrain, Settle: s.WebhookCASettle, Configuration: ownConfiguration(s, kept),
				}, err
			},
			fx.Annotate(newDigestKey, fx.ResultTags(``, ofLeader)),
			func(c *kube.Clients, r *prometheus.Registry, l *zap.Logger) *events.Recorder {
				return events.NewRecorder(c.Typed, r, l)
			},
			func(c *kube.Clients, s Settings, r *prometheus.Registry, l *zap.Logger) *leader.Leader {
				return leader.New(c.Typed, s.Namespace, s.lease(), r, l)
			},
			fx.Annotate(newNotifier, fx.ResultTags(``, ofReplica, ofLeader)),
			fx.Annotate(newFlapping, fx.ResultTags(ofLeader)),
			informers.NewCaches,
			kube.NewWriter,
			newReloader,
			fx.Annotate(newLastValid, fx.ResultTags(``, ofLeader)),
			revisions.NewProcess,
			func(c *kube.Clients, s Settings, caches *informers.Caches, key *digestkey.Key, l *zap.Logger) (*revisions.View, error) {
				return revisions.NewView(c, caches, key, s.Namespace, l)
			},
			fx.Annotate(newBoot, fx.ResultTags(``, `group:"checks"`)),
			newFeed,
			newObserver,
			fx.Annotate(newLosses, fx.ResultTags(``, ofReplica)),
			fx.Annotate(newKeeper, fx.ResultTags(``, ofLeader)),
			newPage,
			newServer,
		),
	)
}

// newDigestKey returns the key of digests, and what has the next start find it.
func newDigestKey(c *kube.Clients, s Settings, l *zap.Logger) (*digestkey.Key, leader.Runnable) {
	key := digestkey.New(c.Typed, s.Namespace)
	return key, informers.KeepDigestKey(key, c.Owner, clock.RealClock{}, l)
}

// newNotifier returns the Notifier, and what runs of it on every replica and on the
// leader.
func newNotifier(c *config.Config, events *events.Recorder, registry *prometheus.Registry, l *zap.Logger) (n *notify.Notifier, replica, leads leader.Runnable) {
	n = notify.New(c.Notify, clock.RealClock{}, registry, l)
	events.Subscribe(n.Hear)
	return n, leader.Runnable{Name: "notifications", Run: n.Run}, leader.Runnable{Name: "notifications of all", Run: n.Lead}
}

// newFlapping has a new leader report that the leader changes again and again.
func newFlapping(leads *leader.Leader, e *events.Recorder, s Settings) leader.Runnable {
	return leader.Runnable{Name: "leader changes", Run: func(context.Context) error {
		if times := leads.Flapping(); times > 0 {
			e.Record(events.Event{About: leader.Ref(s.Namespace), Warning: true, Reason: "LeaderFlapping", Action: "Lead", Note: fmt.Sprintf(
				"Headwater's leader changed %d times within %s, and each time syncs and reloads paused for seconds; "+
					"kubectl get pods shows which replicas restart, and kubectl logs --previous why one ended", times, leader.FlapsWithin)})
		}
		return nil
	}}
}

// newKeeper has the leader keep a RuleStatus for each rule.
func newKeeper(
	c *kube.Clients, r *reloader, s *sync.View, p *protect.View, reloads *reload.View, lost *losses, e *events.Recorder, leads *leader.Leader, registry *prometheus.Registry, l *zap.Logger,
) (*keeper.Keeper, leader.Runnable) {
	k := keeper.New(c.Dynamic, facts.Source{
		Sync: s, Protect: p, Reload: reloads, SyncRules: r.in.Sync, ProtectRules: r.in.Protect, ReloadRules: r.in.Reload,
		Revision:    func() string { return r.in.Kept.inForce.Load().Revision },
		Refused:     func() rulestatus.Refusal { return cmp.Or(r.refused(), r.in.Kept.refusal()) },
		NotCompared: r.isNotCompared, CannotRead: lost.of, CannotReadConsumers: lost.ofConsumers, Changes: r.changes.Load, Why: reasonToWait,
	}, e, clock.RealClock{}, l)
	k.Lost = func() bool {
		return c.Watches.FirstLost([]string{rulestatus.Resource}, informers.CannotReadAfter) != nil
	}
	leads.Doubt = k.Doubt
	registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "headwater_rulestatus_doubtful", Help: "1 while this replica leads and cannot watch or write RuleStatuses, so that they may be old.",
		}, func() float64 { return float64(min(len(k.Doubt()), 1)) }))
	return k, leader.Runnable{Name: "rule statuses", Run: k.Run}
}

func newRegistry(clients *kube.Clients) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfo())
	if clients.Requests != nil {
		registry.MustRegister(clients.Requests)
	}
	return registry
}

// newLiveRules returns the rule set in force, as each module sees it.
func newLiveRules(loaded *config.Config, settings Settings) (sets config.Sets, _ *rules.Live[syncspec.Rule], _ *rules.Live[protectspec.Rule], _ *rules.Live[reloadspec.Rule], err error) {
	if sets, err = loaded.Compile(settings.Namespace); err != nil {
		return sets, nil, nil, nil, err
	}
	return sets, rules.NewLive(sets.Sync), rules.NewLive(sets.Protect), rules.NewLive(sets.Reload), nil
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

func newBoot(p bootParams) (*boot, serve.Check) {
	p.Permissions, p.Log = append(p.Permissions, ownPermissions(p.Settings)...), p.Log.Named("boot")
	b := &boot{in: p, state: errStarting}
	return b, b.check()
}

func ownPermissions(s Settings) []kube.Permission {
	permissions := []kube.Permission{
		{Resource: "namespaces", Verbs: []string{"get"}, Name: s.Namespace, For: "find its own namespace"},
		{Resource: "secrets", Verbs: []string{"get"}, Namespace: s.Namespace, Name: digestkey.SecretName, For: "read the key of its digests"},
		{Resource: "secrets", Verbs: []string{"list", "watch"}, Namespace: s.Namespace, Name: digestkey.SecretName, For: "notice that the key of its digests is gone", Cached: true},
		{Resource: "secrets", Verbs: []string{"create"}, Namespace: s.Namespace, For: "make the key of its digests, and put it back"},
		{Resource: "configmaps", Verbs: []string{"get"}, Namespace: s.Namespace, Name: config.ConfigMapName, For: "know whether the configuration comes from it"},
		{Resource: "secrets", Verbs: []string{"get", "update", "delete"}, Namespace: s.Namespace, Name: config.LastValidName, For: "compare a new configuration with the one that was in force"},
		{Resource: "configmaps", Verbs: []string{"get"}, Namespace: s.Namespace, Name: config.LastValidName, For: "read the configuration that an earlier version stored"},
		{Resource: "configmaps", Verbs: []string{"get"}, Namespace: s.Namespace, Name: survey.ApprovalsName, For: "know whether somebody approved a configuration that is held"},
		{Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: kube.OwnerName, Verbs: []string{"get"}, For: "own what is to go with an uninstallation"},
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

func newServer(p serverParams) (*serve.Server, error) {
	settings, err := p.Settings.tls()
	if err != nil {
		return nil, err
	}
	options := serve.Options{TrustLocalhost: p.Settings.PageLocalhost, TLS: settings}
	if p.Settings.MetricsAuth {
		options.Gate, options.Certificate = serve.NewGate(p.Clients.Typed, clock.RealClock{}, p.Log), p.Certificate
	}
	if p.Settings.TLSCertFile != "" {
		if options.Certificate, err = serve.FileCertificate(p.Settings.TLSCertFile, p.Settings.TLSKeyFile, clock.RealClock{}); err != nil {
			return nil, err
		}
	}
	var mounts []serve.Mount
	if p.Page != nil {
		mounts = append(mounts, serve.Mount{Path: page.Path, Handler: p.Page, Close: p.Page.Close})
	}
	return serve.New(p.Settings.MetricsAddress, p.Registry, p.Checks, options, p.Log, mounts...), nil
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
						b.in.Log.Error("shut down", zap.Error(err))
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
