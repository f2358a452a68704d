package app

import (
	"os"
	"strings"

	"go.uber.org/fx"

	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/kube/leader"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/page"
	"github.com/headwater-k8s/headwater/internal/page/grid"
	"github.com/headwater-k8s/headwater/internal/rulestatus/keeper"
	"github.com/headwater-k8s/headwater/protect"
	"github.com/headwater-k8s/headwater/reload"
	"github.com/headwater-k8s/headwater/reload/report"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/sync"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// newFeed is nil when there is no page: then nobody looks on.
func newFeed(s Settings) *page.Feed {
	if !s.Page {
		return nil
	}
	return page.NewFeed()
}

// observers follow what each module does.
type observers struct {
	fx.Out

	Sync    sync.Observer
	Protect protect.Observer
	Reload  report.Observer
}

func newObservers(feed *page.Feed, touched *keeper.Touched) observers {
	if feed == nil {
		return observers{Sync: sync.Observers{touched}}
	}
	o := observer{feed}
	return observers{Sync: sync.Observers{o, touched}, Protect: o, Reload: o}
}

// observer reports to the page what the modules do.
type observer struct{ feed *page.Feed }

// Touched implements sync.Observer.
func (o observer) Touched(target object.Ref) { o.feed.Touched(targetOf(target)) }

// PropagationStarted implements sync.Observer.
func (o observer) PropagationStarted(rule string, source object.Ref, places int) {
	o.feed.SpreadBegan(rule, source.String(), places)
}

// PropagationProgressed implements sync.Observer.
func (o observer) PropagationProgressed(rule string, source object.Ref, written, last bool) {
	o.feed.SpreadArrived(rule, source.String(), written, last)
}

// DeliveryChanged implements sync.Observer.
func (o observer) DeliveryChanged() { o.feed.DeliveryChanged() }

// Violated implements protect.Observer.
func (o observer) Violated(v protect.Violation) {
	what := string(v.Outcome)
	if v.DryRun {
		what += ", dry run"
	}
	o.feed.Denied(grid.Note{
		What: what, Rule: v.Rule, By: v.User, Names: []string{strings.TrimSpace(string(v.Operation) + " of " + v.Object)}, Why: v.Why,
	})
}

// stepWords are those of reload.Reloaded.
var stepWords = map[reloadspec.Step]string{reloadspec.StepRestart: "restarted", reloadspec.StepRefresh: "refreshed"}

// Reloaded implements report.Observer.
func (o observer) Reloaded(r report.Reloaded) {
	o.feed.Reloaded(grid.Note{What: stepWords[r.Step], Rule: r.Rule, Names: []string{r.Consumer}, Why: whyReloaded(r)})
}

func whyReloaded(r report.Reloaded) string {
	changed := "changed: " + strings.Join(r.Changed, ", ")
	if r.Rule == "" {
		return "asked for by its owner; " + changed
	}
	return changed
}

type pageParams struct {
	fx.In

	Settings Settings
	Feed     *page.Feed
	Leader   *leader.Leader
	Caches   *informers.Caches
	Reloader *reloader
	Sync     *sync.View
	Protect  *protect.View
	Reload   *reload.View
}

// newPage is nil when the settings ask for none.
func newPage(p pageParams) (*page.Page, error) {
	if p.Feed == nil {
		return nil, nil
	}
	replica, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	return page.New(subject{
		leader: p.Leader, replica: replica, namespace: p.Settings.Namespace, view: p.Sync,
		deliveries: deliveries{rules: p.Reloader.sync.Load, sync: p.Sync},
		conditions: conditions{
			reloader: p.Reloader, sync: p.Sync, protect: p.Protect, reload: p.Reload,
			namespaces: func() int { return len(p.Caches.Namespaces.List()) },
		},
	}, p.Feed, page.About{Version: Version, Cluster: p.Settings.ClusterName})
}

// subject answers the page's questions from what the modules know.
type subject struct {
	conditions
	deliveries

	view               *sync.View
	leader             *leader.Leader
	replica, namespace string
}

// Standing implements page.Subject.
func (s subject) Standing() page.Leadership {
	leader, itself := s.leader.Known()
	return page.Leadership{Here: s.view.Working(), Leader: leader, Itself: itself, Replica: s.replica, Namespace: s.namespace}
}

// Rules implements page.Subject.
func (s subject) Rules() []string { return s.view.Rules() }

// Survey implements page.Subject.
func (s subject) Survey(report func(grid.Place)) {
	names := names{}
	s.view.Survey(func(f survey.CloneStatus) { report(names.place(f)) })
}

// Glance implements page.Subject.
func (s subject) Glance() func(grid.Target) []grid.Place {
	names, glance := names{}, s.view.StatusOf()
	return func(target grid.Target) (places []grid.Place) {
		ref := object.Ref{Kind: object.Kind(target.Kind), Namespace: target.Namespace, Name: target.Name}
		glance(ref, func(f survey.CloneStatus) { places = append(places, names.place(f)) })
		return places
	}
}

// names keeps one string for each source, whose clones are many.
type names map[object.Ref]string

func (n names) of(ref object.Ref) string {
	name, known := n[ref]
	if !known {
		name = ref.String()
		n[ref] = name
	}
	return name
}

func (n names) place(f survey.CloneStatus) grid.Place {
	state, _ := grid.StateNamed(string(f.Status))
	return grid.Place{
		Target: targetOf(f.Target), Rule: f.Rule, Source: n.of(f.Source),
		State: state, Reason: string(f.Decision.Reason), Why: f.Why(), Since: f.Since, Revision: f.Revision, Consumers: f.Consumers,
	}
}

func targetOf(ref object.Ref) grid.Target {
	return grid.Target{Kind: string(ref.Kind), Namespace: ref.Namespace, Name: ref.Name}
}
