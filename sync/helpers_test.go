package sync

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// calling is a rule whose clones are called target, or as the source is.
func calling(tb testing.TB, name, target string, source rules.Source) spec.Rule {
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

func testHasher(t *testing.T) *digest.Hasher {
	t.Helper()
	hasher, err := digest.New(make([]byte, digest.KeySize))
	require.NoError(t, err)
	return hasher
}

func testRule(t *testing.T, change func(*spec.Config)) *spec.Rule {
	t.Helper()
	var config spec.Config
	if change != nil {
		change(&config)
	}
	config.Default()
	rule, err := spec.Compile(rules.Base{Name: "blog", Source: rules.Source{Kind: object.Secret, Namespace: "platform", Name: "blogsecret"}}, config, "headwater-system")
	require.NoError(t, err)
	return &rule
}

func testSource(t *testing.T, data map[string]string) *object.Full {
	t.Helper()
	source := &object.Full{
		ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "blogsecret", UID: "source-1"},
		Kind:       object.Secret,
		Content:    object.Content{Type: "Opaque", Data: map[string][]byte{}},
	}
	for key, value := range data {
		source.Content.Data[key] = []byte(value)
	}
	source.Digests = object.Digest(testHasher(t), source.Content)
	return source
}

// cloneOf is what the cache shows after rule's clone of source was written.
func cloneOf(t *testing.T, rule *spec.Rule, source *object.Full, namespace string) *object.Digested {
	t.Helper()
	clone := plan.Desired(*rule, source, namespace).Digested(testHasher(t))
	clone.UID, clone.ResourceVersion = "clone-1", "7"
	return clone
}

// stateOf has rule claim its place in namespace.
func stateOf(rule *spec.Rule, source *object.Full, namespace *plan.Namespace) plan.State {
	return plan.State{
		Target: rule.TargetRef(source.Ref(), namespace.Name), Namespace: namespace, Former: rule,
		Candidates: []plan.Candidate{{Rule: rule, Ref: source.Ref(), Source: source}},
	}
}

func inSync(t *testing.T, s *plan.State) {
	t.Helper()
	s.Clone = cloneOf(t, s.Candidates[0].Rule, s.Candidates[0].Source, s.Namespace.Name)
}
