package webhook

import (
	"context"
	"crypto/x509"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/certs"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/spec"
)

const soon = 10 * time.Second

// background runs work until the test ends, and waits for it.
func background(t *testing.T, work func(context.Context) error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- work(t.Context()) }()
	t.Cleanup(func() { require.NoError(t, <-done) })
}

func testHosts() spec.Hosts {
	return spec.Hosts{Names: []string{"headwater-webhook.headwater.svc"}, IPs: []net.IP{net.ParseIP("127.0.0.1")}}
}

// never is a certs.Settled.
func never(*x509.Certificate) bool { return false }

// maintain calls certs.Maintain while no API server trusts a new CA yet.
func maintain(t testing.TB, m, previous *certs.Material, hosts spec.Hosts, now time.Time, want ...certs.Task) *certs.Material {
	t.Helper()
	kept, done, err := certs.Maintain(m, previous, hosts, never, now)
	require.NoError(t, err)
	require.Equal(t, want, done)
	require.Equal(t, certs.TaskNone, certs.Due(kept, hosts, never, now))
	return kept
}

// canary must never show up in anything that leaves the process.
const canary = "s3cr3t-canary"

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

// selectingRule protects every Secret of platform with the label share=yes.
func selectingRule(change ...func(*spec.Rule)) spec.Rule {
	base, err := rules.NewBase("shared", rules.Source{
		Kind: object.Secret, Namespace: "platform", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"share": "yes"}},
	})
	if err != nil {
		panic(err)
	}
	rule := spec.Rule{Base: base}
	for _, f := range change {
		f(&rule)
	}
	rule.Default()
	return rule
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
