// Package synctest holds what the tests of sync share.
package synctest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// Hasher returns a hasher with a fixed key.
func Hasher(tb testing.TB) *digest.Hasher {
	tb.Helper()
	hasher, err := digest.New(make([]byte, digest.KeySize))
	require.NoError(tb, err)
	return hasher
}

// Rule returns the rule blog of Secret platform/blogsecret. change may be nil.
func Rule(tb testing.TB, change func(*spec.Config)) *spec.Rule {
	tb.Helper()
	var config spec.Config
	if change != nil {
		change(&config)
	}
	config.Default()
	rule, err := spec.Compile(rules.Base{Name: "blog", Source: rules.Source{Kind: object.Secret, Namespace: "platform", Name: "blogsecret"}}, config, "headwater-system")
	require.NoError(tb, err)
	return &rule
}

// Source returns Secret platform/blogsecret with that data.
func Source(tb testing.TB, data map[string]string) *object.Full {
	tb.Helper()
	source := &object.Full{
		ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "blogsecret", UID: "source-1"},
		Kind:       object.Secret,
		Content:    object.Content{Type: "Opaque", Data: map[string][]byte{}},
	}
	for key, value := range data {
		source.Content.Data[key] = []byte(value)
	}
	source.Digests = object.Digest(Hasher(tb), source.Content)
	return source
}

// Targets returns a target in each of the namespaces team-from to team-to, without the
// last.
func Targets(from, to int) []object.Ref {
	var targets []object.Ref
	for i := from; i < to; i++ {
		targets = append(targets, object.Ref{Kind: object.Secret, Namespace: fmt.Sprintf("team-%d", i), Name: "shared"})
	}
	return targets
}

// RuleNamed returns a rule for a source in namespace platform. Its clones have the name
// target, or that of the source if target is empty.
func RuleNamed(tb testing.TB, name, target string, source rules.Source) spec.Rule {
	tb.Helper()
	source.Namespace = "platform"
	base, err := rules.NewBase(name, source)
	require.NoError(tb, err)
	config := spec.Config{}
	config.Target.Name = target
	config.Default()
	rule, err := spec.Compile(base, config, "headwater-system")
	require.NoError(tb, err)
	return rule
}
