package app

import (
	"os"
	"time"

	"go.uber.org/fx"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/kube/leader"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/page"
	"github.com/headwater-k8s/headwater/internal/page/grid"
	"github.com/headwater-k8s/headwater/internal/rulestatus/keeper"
	"github.com/headwater-k8s/headwater/protect"
	"github.com/headwater-k8s/headwater/reload"
	"github.com/headwater-k8s/headwater/sync"
	"github.com/headwater-k8s/headwater/sync/board"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// newFeed is nil when there is no page: then nobody looks on.
func newFeed(s Settings, e *events.Recorder) *page.Feed {
	if !s.Page {
		return nil
	}
	feed := page.NewFeed()
	e.Subscribe(func(event events.Event) {
		if note := noteOf(event); note != nil {
			feed.Happened(*note)
		}
	})
	return feed
}

// noteOf is what the page says of event; nil of a condition that persists, which it shows
// while that does; one that comes back does not count as such.
func noteOf(event events.Event) *grid.Note {
	if event.Persisting || event.About == nil {
		return nil
	}
	return &grid.Note{What: event.Reason, Warning: event.Warning, Rule: event.Rule, Names: []string{events.NameOf(event.About)}, Why: event.Note}
}

// newObserver is nil without a feed.
func newObserver(feed *page.Feed) sync.Observer {
	if feed == nil {
		return nil
	}
	return feed
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
	Keeper   *keeper.Keeper
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
	return page.New(subject{p, replica}, p.Feed, page.About{Version: Version, Cluster: p.Settings.ClusterName})
}

// subject answers the page's questions from what the modules know.
type subject struct {
	pageParams

	replica string
}

// Standing implements page.Subject.
func (s subject) Standing() page.Leadership {
	leader, itself, unconfirmed := s.Leader.Known()
	return page.Leadership{Here: s.Sync.Working(), Leader: leader, Itself: itself, Unconfirmed: unconfirmed, Replica: s.replica, Namespace: s.Settings.Namespace}
}

// longest is how old the page may be if reading how clones stand takes long.
const longest = time.Second

// Rules implements page.Subject.
func (s subject) Rules() []string {
	s.Sync.Refresh(0, longest)
	return s.Sync.Rules()
}

// Changes implements page.Subject.
func (s subject) Changes(version uint64, report func(namespace string)) (now uint64, all bool) {
	return s.Sync.Changes(version, report)
}

// Places implements page.Subject.
func (s subject) Places(namespace string, wanted func(rule string, state grid.State) bool, report func(grid.Place)) {
	names := names{}
	s.Sync.Each(namespace,
		func(s *board.Standing) bool { return wanted(s.Rule, stateOf(s.Status, s.Waits())) },
		func(f survey.CloneStatus) { report(names.place(f)) })
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
	return grid.Place{
		Target: grid.Target{Kind: string(f.Target.Kind), Namespace: f.Target.Namespace, Name: f.Target.Name}, Rule: f.Rule, Source: n.of(f.Source),
		State: stateOf(f.Status, f.Waits()), Reason: string(f.Decision.Reason), Why: f.Why(), Since: f.Since, Seen: f.Seen, Revision: f.Revision,
	}
}

// stateOf returns how a clone of that status stands in the grid. One that waits to be deleted is kept
// until then.
func stateOf(status survey.Status, waits bool) grid.State {
	if waits {
		return grid.Retained
	}
	state, _ := grid.StateNamed(string(status))
	return state
}
