package page

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

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
	places     map[grid.Target]grid.Place
	conditions page.Conditions
	deliveries page.Deliveries
}

// show serves the page of that many rules and namespaces, all in sync.
func show(t *testing.T, rules, namespaces int) *landscape {
	t.Helper()
	l := &landscape{T: t, feed: page.NewFeed(), places: map[grid.Target]grid.Place{}}
	for rule := range rules {
		name := fmt.Sprintf("rule-%d", rule+1)
		l.rules = append(l.rules, name)
		l.conditions.Rules = append(l.conditions.Rules, page.Rule{Name: name, Syncs: true})
		for namespace := range namespaces {
			l.set(rule+1, namespace+1, grid.Current)
		}
	}
	l.conditions.Waits, l.deliveries.All = page.NewWaits(nil), []page.Delivery{}
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
	l.places[target] = grid.Place{
		Target: target, Rule: name, Source: "Secret/platform/" + name, State: state, Reason: "Test",
		Why: "a reason that is long enough to need more than one line of the table, as those of the API server are",
	}
	l.feed.Touched(target)
}

// unset has a rule not select a namespace.
func (l *landscape) unset(rule, namespace int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	target := grid.Target{Kind: "Secret", Namespace: fmt.Sprintf("team-%05d", namespace), Name: fmt.Sprintf("rule-%d", rule)}
	delete(l.places, target)
	l.feed.Touched(target)
}

// Standing implements page.Subject.
func (l *landscape) Standing() page.Leadership { return page.Leadership{Here: true} }

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

// Deliveries implements page.Subject.
func (l *landscape) Deliveries() page.Deliveries {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deliveries
}

// Rules implements page.Subject.
func (l *landscape) Rules() []string { return l.rules }

// Survey implements page.Subject.
func (l *landscape) Survey(report func(grid.Place)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, place := range l.places {
		report(place)
	}
}

// Glance implements page.Subject.
func (l *landscape) Glance() func(grid.Target) []grid.Place {
	return func(target grid.Target) []grid.Place {
		l.mu.Lock()
		defer l.mu.Unlock()
		if place, found := l.places[target]; found {
			return []grid.Place{place}
		}
		return nil
	}
}
