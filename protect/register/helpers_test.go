package register

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/spec"
)

func writesTo(client *fake.Clientset, resource string) (verbs []string) {
	for _, action := range client.Actions() {
		switch action.GetVerb() {
		case "create", "update", "patch", "delete":
			if action.GetResource().Resource == resource {
				verbs = append(verbs, action.GetVerb())
			}
		}
	}
	return verbs
}

const soon = 10 * time.Second

// background runs work until the test ends, and waits for it.
func background(t *testing.T, work func(context.Context) error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- work(t.Context()) }()
	t.Cleanup(func() { require.NoError(t, <-done) })
}

func testEndpoint(t testing.TB) spec.Endpoint {
	t.Helper()
	endpoint, err := spec.NewEndpoint("", "headwater")
	require.NoError(t, err)
	return endpoint
}

type sentEvents []events.Event

func (s *sentEvents) Record(event events.Event) { *s = append(*s, event) }

func testRules() *rules.Set[spec.Rule] {
	return rules.NewSet(blogRule(), newRule("blogconfig", object.ConfigMap, "platform", "blogconfig"))
}

const headwaterUser = "system:serviceaccount:headwater:headwater"

func newRule(name string, kind object.Kind, namespace, source string, change ...func(*spec.Rule)) spec.Rule {
	rule := spec.Rule{Base: rules.Base{Name: name, Source: rules.Source{Kind: kind, Namespace: namespace, Name: source}}}
	for _, f := range change {
		f(&rule)
	}
	rule.Default()
	return rule
}

func blogRule(change ...func(*spec.Rule)) spec.Rule {
	return newRule("blogsecret", object.Secret, "platform", "blogsecret", change...)
}

func newWorld(change ...func(*decide.World)) decide.World {
	world := decide.World{
		Headwater:   headwaterUser,
		Terminating: func(string) bool { return false },
		HasSource:   func(spec.Rule) bool { return true },
		Holders:     func(string) []string { return nil },
		Bound: func(user decide.User, role string) bool {
			return role == "cluster-admin" && slices.Contains(user.Groups, "system:masters")
		},
	}
	for _, f := range change {
		f(&world)
	}
	return world
}
