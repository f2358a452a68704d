package reload

import (
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// Module contributes the leader's reload work and the permissions it needs.
var Module = fx.Module("reload",
	fx.Decorate(func(log *zap.Logger) *zap.Logger { return log.Named("reload") }),
	fx.Provide(fx.Private, newDefinitions, newLiveConsumers, newMetrics, newDependencies, newController, newSetter),
	fx.Provide(newResult),
)

// Options tune the module.
type Options struct {
	// Workers is how many consumers are worked on at once; 0 means 32.
	Workers int
}

// Params are what the app provides. The digest key must be loaded before the
// caches are started, and Sources must track the sources of every rule.
type Params struct {
	fx.In

	Clients   *kube.Clients
	Caches    *kube.Caches
	DigestKey *kube.DigestKey
	Events    *kube.Events
	Rules     *rules.Live[Rule]
	Registry  *prometheus.Registry
	Log       *zap.Logger
	Options   Options `optional:"true"`
}

// Result is what the module contributes.
type Result struct {
	fx.Out

	Restarts    kube.Runnable     `group:"leader"`
	Fields      kube.Runnable     `group:"leader"`
	Permissions []kube.Permission `group:"permissions,flatten"`
}

// newDefinitions adds its cache to caches.
func newDefinitions(clients *kube.Clients, caches *kube.Caches, live *rules.Live[Rule], log *zap.Logger) (*kube.View[*kube.Definition], error) {
	view, err := kube.NewDefinitions(clients, log)
	if err != nil {
		return nil, err
	}
	caches.Add(view, hasRules(live))
	return view, nil
}

// newLiveConsumers are those that the rules in force, and the kinds that the
// file declares, ask for.
func newLiveConsumers(p Params, settings Settings, definitions *kube.View[*kube.Definition]) (*consumers, error) {
	c, err := newConsumers(p.Clients, p.Caches, hasRules(p.Rules), customKinds(settings.Workloads, p.Rules), definitions, p.Log)
	if err != nil {
		return nil, err
	}
	p.Rules.Subscribe(func(_, _ *rules.Set[Rule]) { c.optional.Recheck() })
	return c, nil
}

func hasRules(live *rules.Live[Rule]) func() bool {
	return func() bool { return len(live.Load().All()) > 0 }
}

func newDependencies(p Params) dependencies {
	return dependencies{
		clients: p.Clients, caches: p.Caches, digestKey: p.DigestKey, events: p.Events,
		rules: p.Rules, registry: p.Registry, log: p.Log, workers: p.Options.Workers,
	}
}

func newResult(c *controller, s *setter, settings Settings, live *rules.Live[Rule]) Result {
	return Result{
		Restarts:    kube.Runnable{Name: "reload", Run: c.run},
		Fields:      kube.Runnable{Name: "reload-targets", Run: s.run},
		Permissions: permissions(settings, live.Load()),
	}
}

// permissions are what the module needs for what the file says at the start.
func permissions(settings Settings, set *rules.Set[Rule]) []kube.Permission {
	verbs := []string{"list", "watch", "patch"}
	const restart = "restart consumers"
	needed := []kube.Permission{
		{Group: "apps", Resource: "deployments", Verbs: verbs, For: restart},
		{Group: "apps", Resource: "statefulsets", Verbs: verbs, For: restart},
		{Group: "apps", Resource: "daemonsets", Verbs: verbs, For: restart},
		{Group: "batch", Resource: "cronjobs", Verbs: verbs, For: restart},
		{Resource: "pods", Verbs: verbs, For: "refresh mounted volumes"},
		{
			Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Verbs: []string{"list", "watch"},
			For: "know which kinds there are",
		},
	}
	for _, form := range optionalForms(settings.Workloads) {
		needed = append(needed, kube.Permission{Group: form.Group, Resource: form.Resource, Verbs: verbs, For: restart})
	}
	for _, t := range targetsOf(set) {
		toTarget := kube.Permission{
			Group: t.form.Group, Resource: t.form.Resource, Verbs: verbs, For: "tell the targets of rule " + t.rule.Name + " of changes",
		}
		if !t.annotates() {
			toTarget.Verbs = append([]string{"get"}, verbs...)
			needed = append(needed, kube.Permission{
				Resource: t.rule.Source.Kind.Resource(), Verbs: []string{"get"}, For: "set fields of the targets of rule " + t.rule.Name,
			})
		}
		needed = append(needed, toTarget)
	}
	return needed
}
