package page

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/page"
	"github.com/headwater-k8s/headwater/internal/page/grid"
)

// landscape is a page.Subject of any size, with no cluster behind it: a Secret
// of every rule in every namespace.
type landscape struct {
	*testing.T

	feed *page.Feed
	url  string

	mu         sync.Mutex
	rules      []string
	places     map[string]map[grid.Target]grid.Place // by namespace
	version    uint64
	changed    map[string]uint64
	conditions page.Conditions
	deliveries page.Deliveries
	// elsewhere is true if another replica leads, and unconfirmed since when nobody does.
	elsewhere   bool
	unconfirmed time.Time
}

// show serves the page of that many rules and namespaces, all in sync.
func show(t *testing.T, rules, namespaces int) *landscape {
	t.Helper()
	l := &landscape{T: t, feed: page.NewFeed(), places: map[string]map[grid.Target]grid.Place{}, changed: map[string]uint64{}}
	for rule := range rules {
		name := fmt.Sprintf("rule-%d", rule+1)
		l.rules = append(l.rules, name)
		l.conditions.Rules = append(l.conditions.Rules, page.Rule{Name: name, Syncs: true})
		for namespace := range namespaces {
			l.set(rule+1, namespace+1, grid.Current)
		}
	}
	l.conditions.Waits, l.deliveries.All = page.NewWaits(nil), []page.Delivery{}
	l.conditions.Todos = []page.Todo{}
	if rules == 0 {
		l.conditions.Rules = []page.Rule{}
	}
	shown, err := page.New(l, l.feed, page.About{Version: "v1.2.3", Cluster: "prod-eu-1"})
	require.NoError(t, err)
	server := httptest.NewServer(shown)
	t.Cleanup(func() {
		shown.Close()
		server.Close()
	})
	l.url = server.URL
	return l
}

// set has the clone of a rule stand so in a namespace; both count from 1.
func (l *landscape) set(rule, namespace int, state grid.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := fmt.Sprintf("rule-%d", rule)
	target := grid.Target{Kind: "Secret", Namespace: fmt.Sprintf("team-%05d", namespace), Name: name}
	if l.places[target.Namespace] == nil {
		l.places[target.Namespace] = map[grid.Target]grid.Place{}
	}
	l.places[target.Namespace][target] = grid.Place{
		Target: target, Rule: name, Source: "Secret/platform/" + name, State: state, Reason: "Test",
		Why:   "a reason that is long enough to need more than one line of the table, as those of the API server are",
		Since: time.Now(), Seen: true,
	}
	l.change(target)
}

// unset has a rule not select a namespace.
func (l *landscape) unset(rule, namespace int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	target := grid.Target{Kind: "Secret", Namespace: fmt.Sprintf("team-%05d", namespace), Name: fmt.Sprintf("rule-%d", rule)}
	delete(l.places[target.Namespace], target)
	l.change(target)
}

// Standing implements page.Subject.
func (l *landscape) Standing() page.Leadership {
	l.mu.Lock()
	defer l.mu.Unlock()
	return page.Leadership{Here: !l.elsewhere, Leader: "headwater-0", Replica: "headwater-1", Unconfirmed: l.unconfirmed}
}

// hold changes the conditions.
func (l *landscape) hold(change func(*page.Conditions)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conditions.Rules = slices.Clone(l.conditions.Rules)
	change(&l.conditions)
}

// Conditions implements page.Subject.
func (l *landscape) Conditions() page.Conditions {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conditions
}

// deliver changes the deliveries.
func (l *landscape) deliver(all ...page.Delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deliveries = page.Deliveries{All: append([]page.Delivery{}, all...)}
	l.feed.DeliveryChanged()
}

// hear has something happen to the source of a rule.
func (l *landscape) hear(rule, reason string) {
	l.feed.Happened(grid.Note{
		What: reason, Rule: rule, Names: []string{"Secret/platform/" + rule},
		Why: "a sentence of the length that those of Events mostly have, which names what changed, and why",
	})
}

// Deliveries implements page.Subject.
func (l *landscape) Deliveries() page.Deliveries {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deliveries
}

// Rules implements page.Subject.
func (l *landscape) Rules() []string { return l.rules }

// change records that the namespace of target changed. The lock is held.
func (l *landscape) change(target grid.Target) {
	l.version++
	l.changed[target.Namespace] = l.version
}

// Changes implements page.Subject.
func (l *landscape) Changes(version uint64, report func(string)) (now uint64, all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for namespace, changed := range l.changed {
		if changed > version {
			report(namespace)
		}
	}
	return l.version, version == 0
}

// Places implements page.Subject.
func (l *landscape) Places(namespace string, wanted func(string, grid.State) bool, report func(grid.Place)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := maps.Values(l.places)
	if namespace != "" {
		all = slices.Values([]map[grid.Target]grid.Place{l.places[namespace]})
	}
	for places := range all {
		for _, place := range places {
			if wanted(place.Rule, place.State) {
				report(place)
			}
		}
	}
}
