package reload

import (
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// Module contributes the leader's reload work and the permissions it needs.
var Module = fx.Module("reload",
	fx.Decorate(func(log *zap.Logger) *zap.Logger { return log.Named("reload") }),
	fx.Provide(fx.Private, newNeededConsumers, newMetrics, newDependencies, newController),
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
	Settings  *LiveSettings
	Registry  *prometheus.Registry
	Log       *zap.Logger
	Options   Options `optional:"true"`
}

// Result is what the module contributes.
type Result struct {
	fx.Out

	Runnable    kube.Runnable     `group:"leader"`
	Permissions []kube.Permission `group:"permissions,flatten"`
}

func newDependencies(p Params) dependencies {
	return dependencies{
		clients: p.Clients, caches: p.Caches, digestKey: p.DigestKey, events: p.Events,
		rules: p.Rules, settings: p.Settings, registry: p.Registry, log: p.Log, workers: p.Options.Workers,
	}
}

// newNeededConsumers has consumers read as soon as there is a rule, or they may
// do without one.
func newNeededConsumers(p Params) (*consumers, error) {
	needed := func() bool { return p.Settings.Load().optIn() || len(p.Rules.Load().All()) > 0 }
	return newConsumers(p.Clients, p.Caches, needed, p.Log)
}

func newResult(c *controller) Result {
	return Result{Runnable: kube.Runnable{Name: "reload", Run: c.run}, Permissions: permissions(c.honoured())}
}

// permissions are what the module needs for what the file says at the start.
func permissions(settings Settings) []kube.Permission {
	verbs := []string{"list", "watch", "patch"}
	needed := []kube.Permission{
		{Group: "apps", Resource: "deployments", Verbs: verbs, For: "restart consumers"},
		{Group: "apps", Resource: "statefulsets", Verbs: verbs, For: "restart consumers"},
		{Group: "apps", Resource: "daemonsets", Verbs: verbs, For: "restart consumers"},
		{Group: "batch", Resource: "cronjobs", Verbs: verbs, For: "restart consumers"},
		{Resource: "pods", Verbs: verbs, For: "refresh mounted volumes"},
	}
	for _, kind := range object.Kinds {
		if settings.optIn() {
			needed = append(needed, kube.Permission{Resource: kind.Resource(), Verbs: []string{"get"}, For: "read what owners of workloads ask about"})
		}
	}
	return needed
}
