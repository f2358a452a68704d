package sync

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// A key for what no rule selects would cost every start as many looks as there
// are sources times namespaces.
func TestARuleIsConcernedByNamespacesThatItSelectsOrDid(t *testing.T) {
	rule := synctest.Rule(t, func(c *spec.Config) {
		c.Namespaces.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	})
	of := func(name, tier string) *informers.Namespace {
		namespace := &informers.Namespace{Labels: map[string]string{"tier": tier}}
		namespace.Name = name
		return namespace
	}
	for sentence, test := range map[string]struct {
		change informers.Change[*informers.Namespace]
		want   bool
	}{
		"a new one that it selects":          {informers.Change[*informers.Namespace]{New: of("team-a", "gold"), Added: true}, true},
		"a new one that it does not":         {informers.Change[*informers.Namespace]{New: of("team-a", "silver"), Added: true}, false},
		"one that comes to be selected":      {informers.Change[*informers.Namespace]{Old: of("team-a", "silver"), New: of("team-a", "gold")}, true},
		"one that is selected no more":       {informers.Change[*informers.Namespace]{Old: of("team-a", "gold"), New: of("team-a", "silver")}, true},
		"one that never was":                 {informers.Change[*informers.Namespace]{Old: of("team-a", "silver"), New: of("team-a", "bronze")}, false},
		"that of the source, which never is": {informers.Change[*informers.Namespace]{New: of("platform", "gold"), Added: true}, false},
	} {
		t.Run(sentence, func(t *testing.T) { require.Equal(t, test.want, matchesEither(*rule, test.change)) })
	}
}
