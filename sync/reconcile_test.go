package sync

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

func testController(t *testing.T, set ...Rule) (*controller, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset()
	scheme := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	clients := &kube.Clients{Typed: client, Metadata: metadatafake.NewSimpleMetadataClient(scheme)}
	caches, err := kube.NewCaches(clients, kube.NewDigestKey(client, "headwater-system"), zap.NewNop())
	require.NoError(t, err)
	return &controller{
		live: rules.NewLive(rules.NewSet(set...)), caches: caches, writer: kube.NewWriter(clients),
		metrics: newMetrics(prometheus.NewRegistry()), log: zap.NewNop(),
	}, client
}

// Invariant 5: what is absent from a cache that was not read yet is not gone.
func TestNothingIsDecidedBeforeTheSourceNamespaceWasRead(t *testing.T) {
	rule := testRule(t, func(c *Config) { c.OnSourceDeleted = Delete })
	c, client := testController(t, *rule)
	err := c.reconcile(t.Context(), Key{rule.Name, rule.Source.Ref(), "team-a"})
	require.ErrorIs(t, err, errSourceUnread)
	require.Empty(t, client.Actions(), "no request, least of all a delete")
}

func TestEveryObjectOfATargetsNameIsAKey(t *testing.T) {
	renamed := testRule(t, func(c *Config) { c.Target.Name = "blog" })
	renamed.Name = "renamed"
	plain := testRule(t, nil)
	c, _ := testController(t, *plain, *renamed)
	source := plain.Source.Ref()
	for sentence, test := range map[string]struct {
		target object.Ref
		want   []Key
	}{
		"the source's own name":       {object.Ref{Kind: object.Secret, Namespace: "team-a", Name: "blogsecret"}, []Key{{"blog", source, "team-a"}}},
		"a target's other name":       {object.Ref{Kind: object.Secret, Namespace: "team-a", Name: "blog"}, []Key{{"renamed", source, "team-a"}}},
		"another kind":                {object.Ref{Kind: object.ConfigMap, Namespace: "team-a", Name: "blog"}, nil},
		"another name":                {object.Ref{Kind: object.Secret, Namespace: "team-a", Name: "other"}, nil},
		"the source is not its clone": {source, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			require.Equal(t, test.want, c.keysFor(test.target))
		})
	}
}

func TestTheFirstRuleInTheFileClaimsATarget(t *testing.T) {
	first, second := testRule(t, nil), testRule(t, nil)
	first.Name, second.Name = "first", "second"
	all := []Rule{*first, *second}
	target := first.TargetRef(first.Source.Ref(), "team-a")
	require.Empty(t, claimant(all, *first, target, Namespace{Name: "team-a"}))
	require.Equal(t, "first", claimant(all, *second, target, Namespace{Name: "team-a"}))
	require.Empty(t, claimant(all, *second, target, Namespace{Name: "kube-system"}), "where it does not match it claims nothing")
}
