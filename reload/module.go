package reload

import (
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
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/reload/fields"
	"github.com/headwater-k8s/headwater/reload/gather"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/report"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/track"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Module contributes the leader's reload work and the permissions it needs.
var Module = fx.Module("reload",
	fx.Decorate(func(log *zap.Logger) *zap.Logger { return log.Named("reload") }),
	fx.Provide(fx.Private, newDefinitions, newNeededConsumers, report.NewMetrics, newController, newFields),
	fx.Provide(newResult),
)

// Options tune the module.
type Options struct {
	// Workers is how many consumers are reconciled at once; 0 means 32.
	Workers int
	// Namespace is Headwater's own.
	Namespace string
}

// params are what the app provides. The digest key must be loaded before the caches
// start, and Sources must track the sources of every rule.
type params struct {
	fx.In

	Clients   *kube.Clients
	Caches    *informers.Caches
	DigestKey *digestkey.Key
	Revisions *revisions.View
	Process   *revisions.Process
	Events    *events.Recorder
	Rules     *rules.Live[spec.Rule]
	Settings  *live.Value[*spec.Compiled]
	Registry  *prometheus.Registry
	Log       *zap.Logger
	Options   Options `optional:"true"`
}

// result is what the module contributes.
type result struct {
	fx.Out

	View        *View
	Restarts    leader.Runnable   `group:"leader"`
	Fields      leader.Runnable   `group:"leader"`
	Permissions []kube.Permission `group:"permissions,flatten"`
}

// needed reports whether the caches of consumers must run: as soon as there is a rule,
// or consumers may be reloaded without one.
func (p params) needed() bool { return needed(p.Settings.Load().Settings, p.Rules.Load()) }

func needed(settings spec.Settings, set *rules.Set[spec.Rule]) bool {
	return settings.WithoutRules() || len(set.All()) > 0
}

// newDefinitions creates the cache of CustomResourceDefinitions.
func newDefinitions(p params) (*informers.View[*informers.Definition], error) {
	view, err := informers.NewDefinitions(p.Clients, p.Log)
	if err != nil {
		return nil, err
	}
	p.Caches.AddApart(view, p.needed)
	return view, nil
}

// newNeededConsumers creates the caches for the kinds that the current rules and
// settings name. Settings are updated before rules.
func newNeededConsumers(p params, definitions *informers.View[*informers.Definition]) (*gather.Consumers, error) {
	declared := func() []kinds.WorkloadKind { return p.Settings.Load().Workloads }
	c, err := gather.NewConsumers(p.Clients, p.Caches, p.needed, gather.CustomKinds(declared, p.Rules, workload.ActedOn), definitions, workload.ActedOn, p.Log)
	if err != nil {
		return nil, err
	}
	c.Sections = func() []spec.Section { return p.Settings.Load().Sections }
	p.Rules.Subscribe(func(_, _ *rules.Set[spec.Rule]) { c.Optional.Recheck() })
	return c, nil
}

func newFields(p params, definitions *informers.View[*informers.Definition], c *controller) *fields.Controller {
	return (&fields.Controller{Reporter: c.report, Clients: p.Clients, DigestKey: p.DigestKey, Rules: p.Rules}).Init(p.Registry, definitions)
}

func newResult(p params, c *controller, s *fields.Controller) result {
	return result{
		View:        &View{c, p.needed},
		Restarts:    leader.Runnable{Name: "reload", Run: c.run},
		Fields:      leader.Runnable{Name: "reload-targets", Run: s.Run},
		Permissions: permissions(p.Clients.Scope, c.settings.Load().Settings, c.rules.Load(), p.Options.Namespace),
	}
}

// View lists the waiting restarts and the stuck rollouts that the controller knows. It sends no request and
// changes nothing.
type View struct {
	controller *controller
	// needed reports whether anything is reloaded.
	needed func() bool
}

// CannotRead says what of consumers has not been watched for so long, or of the objects that they
// use has not been read since this process began; nil if all is, or nothing is reloaded. For what
// never was, the time counts from the first call.
func (v *View) CannotRead(after time.Duration) *kube.Loss {
	if !v.needed() {
		return nil
	}
	return v.controller.cannotDecide(after)
}

// Settled reports whether every consumer was reconciled since this process leads, or nothing is
// reloaded: what it knows of waiting restarts is then complete.
func (v *View) Settled() bool { return !v.needed() || v.controller.passed.Load() }

// Waiting returns every waiting restart, the longest-waiting first.
func (v *View) Waiting() []track.Waiting { return v.controller.memory.Waiting() }

// Stuck returns the rollouts that Headwater started and that do not complete, by consumer.
func (v *View) Stuck() []track.StuckRollout { return v.controller.started.Watch.StuckRollouts() }

// permissions returns what the module needs for the configuration at the start.
func permissions(scope kube.Scope, settings spec.Settings, set *rules.Set[spec.Rule], namespace string) []kube.Permission {
	if !needed(settings, set) {
		return nil
	}
	verbs := []string{"list", "watch", "patch"}
	const restart = "restart consumers"
	all := []kube.Permission{
		{Group: "batch", Resource: "jobs", Verbs: []string{"get"}, For: "report Jobs that Reloader would recreate", Optional: true},
		{Resource: "pods", Verbs: verbs, For: "refresh mounted volumes", Cached: true},
		{
			Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Verbs: []string{"list", "watch"},
			For: "find out which kinds the cluster has",
		},
	}
	for _, kind := range kinds.WorkloadKinds() {
		all = append(all, kube.Permission{Group: kinds.Typed[kind].Group, Resource: kinds.Typed[kind].Resource, Verbs: verbs, For: restart, Cached: true})
	}
	for _, kind := range object.Kinds {
		if settings.WithoutRules() {
			all = append(all, kube.Permission{Resource: kind.Resource(), Verbs: []string{"get"}, For: "read objects that workload owners, or reload.namespaces, opted in for"})
		}
	}
	all = append(all, evidencePermissions(scope, set, namespace)...)
	for _, form := range kinds.Optional(settings.Workloads) {
		all = append(all, kube.Permission{Group: form.Group, Resource: form.Resource, Verbs: verbs, For: restart, Optional: true})
	}
	for _, t := range spec.TargetsOf(set) {
		toTarget := kube.Permission{
			Group: t.Info.Group, Resource: t.Info.Resource, Verbs: verbs, For: "update the targets of rule " + t.Rule.Name,
			Optional: true,
		}
		if !t.Annotates() {
			toTarget.Verbs = append([]string{"get"}, verbs...)
			all = append(all, kube.Permission{
				Resource: t.Rule.Source.Kind.Resource(), Verbs: []string{"get"}, For: "set fields of the targets of rule " + t.Rule.Name,
			})
		}
		all = append(all, toTarget)
	}
	return all
}

// evidencePermissions returns what the evidence of deliveries needs.
func evidencePermissions(scope kube.Scope, set *rules.Set[spec.Rule], namespace string) (needed []kube.Permission) {
	if len(set.All()) == 0 {
		return nil
	}
	for _, kind := range object.Kinds {
		if !scope.Reads(kind.Resource()) {
			continue
		}
		needed = append(needed, kube.Permission{
			Resource: kind.Resource(), Namespace: namespace, Verbs: []string{"patch"}, For: "write down how consumers do with a revision",
		})
	}
	return needed
}
