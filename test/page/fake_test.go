package page

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/page"
)

// landscape is a page.Subject of any size, with no cluster behind it: a Secret
// of every rule in every namespace.
type landscape struct {
	*testing.T

	feed *page.Feed
	url  string

	mu         sync.Mutex
	rules      []string
	places     map[page.Target]page.Place
	conditions page.Conditions
}

// show serves the page of that many rules and namespaces, all in sync.
func show(t *testing.T, rules, namespaces int) *landscape {
	t.Helper()
	l := &landscape{T: t, feed: page.NewFeed(), places: map[page.Target]page.Place{}}
	for rule := range rules {
		name := fmt.Sprintf("rule-%d", rule+1)
		l.rules = append(l.rules, name)
		l.conditions.Rules = append(l.conditions.Rules, page.Rule{Name: name, Syncs: true})
		for namespace := range namespaces {
			l.set(rule+1, namespace+1, page.Current)
		}
	}
	l.conditions.Waits = page.NewWaits(nil)
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
func (l *landscape) set(rule, namespace int, state page.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := fmt.Sprintf("rule-%d", rule)
	target := page.Target{Kind: "Secret", Namespace: fmt.Sprintf("team-%05d", namespace), Name: name}
	l.places[target] = page.Place{
		Target: target, Rule: name, Source: "Secret/platform/" + name, State: state, Reason: "Test",
		Why: "a reason that is long enough to need more than one line of the table, as those of the API server are",
	}
	l.feed.Touched(target)
}

// unset has a rule not select a namespace.
func (l *landscape) unset(rule, namespace int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	target := page.Target{Kind: "Secret", Namespace: fmt.Sprintf("team-%05d", namespace), Name: fmt.Sprintf("rule-%d", rule)}
	delete(l.places, target)
	l.feed.Touched(target)
}

// Standing implements page.Subject.
func (l *landscape) Standing() page.Standing { return page.Standing{Here: true} }

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

// Rules implements page.Subject.
func (l *landscape) Rules() []string { return l.rules }

// Survey implements page.Subject.
func (l *landscape) Survey(report func(page.Place)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, place := range l.places {
		report(place)
	}
}

// Glance implements page.Subject.
func (l *landscape) Glance() func(page.Target) []page.Place {
	return func(target page.Target) []page.Place {
		l.mu.Lock()
		defer l.mu.Unlock()
		if place, found := l.places[target]; found {
			return []page.Place{place}
		}
		return nil
	}
}
