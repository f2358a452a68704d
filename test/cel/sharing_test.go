package cel

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	protectdecide "github.com/headwater-k8s/headwater/protect/decide"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
)

// maxSharing is how many rules may share something for single overrides to
// count.
const maxSharing = 20

// The CEL cost limit allows few permission checks per request. Users with the
// override permission must pass all the same, with webhooks and with policies.
func TestWhoHoldsTheOverridePassesHoweverManyRulesShareWhatTheyProtect(t *testing.T) {
	edited := request{
		operation: admission.Update, kind: object.Secret, inNamespace: "p", name: "a", user: user.DefaultInfo{Name: "breaker"},
		before: shared("before"), after: shared("after"),
	}
	deleted := request{
		operation: admission.Delete, kind: protectspec.KindNamespace, inNamespace: "p", name: "p", user: user.DefaultInfo{Name: "breaker"},
		before: &object.Full{Kind: protectspec.KindNamespace, ObjectMeta: metav1.ObjectMeta{Name: "p"}},
	}
	selected := &metav1.LabelSelector{MatchLabels: map[string]string{"share": "yes"}}
	for sentence, tc := range map[string]struct {
		source  func(i int) rules.Source
		request request
	}{
		"rules that select one object": {
			func(int) rules.Source { return rules.Source{Kind: object.Secret, Namespace: "p", Selector: selected} }, edited,
		},
		"rules that select one object, but for one that names it": {
			func(i int) rules.Source {
				if i == 0 {
					return rules.Source{Kind: object.Secret, Namespace: "p", Name: "a"}
				}
				return rules.Source{Kind: object.Secret, Namespace: "p", Selector: selected}
			}, edited,
		},
		"rules that guard one namespace": {
			func(i int) rules.Source {
				return rules.Source{Kind: object.Secret, Namespace: "p", Name: fmt.Sprintf("a%d", i)}
			}, deleted,
		},
	} {
		for _, count := range []int{1, 3, maxSharing, maxSharing + 1, 60} {
			t.Run(fmt.Sprintf("%d %s", count, sentence), func(t *testing.T) {
				all, names := sharing(t, count, tc.source)
				engines := newEngines(t, rules.NewSet(all...))
				require.True(t, engines.refuse(t, tc.request, nil), "nobody's")
				require.False(t, engines.refuse(t, tc.request, overrides{every}), "for every rule")
				require.Equal(t, count > maxSharing, engines.refuse(t, tc.request, names), "for each by its name")
				require.True(t, engines.refuse(t, tc.request, names[1:]), "for all but one")
			})
		}
	}
}

func shared(value string) *object.Full {
	return &object.Full{
		Kind: object.Secret, ObjectMeta: metav1.ObjectMeta{Namespace: "p", Name: "a", Labels: map[string]string{"share": "yes"}},
		Content: object.Content{Type: "Opaque", Data: map[string][]byte{"k": []byte(value)}},
	}
}

func sharing(t *testing.T, count int, source func(i int) rules.Source) (all []protectspec.Rule, names overrides) {
	t.Helper()
	for i := range count {
		base, err := rules.NewBase(fmt.Sprintf("r%03d", i), source(i))
		require.NoError(t, err)
		rule := protectspec.Rule{Base: base}
		rule.Default()
		all, names = append(all, rule), append(names, base.Name)
	}
	return all, names
}

// engines are both, each as if it protected alone.
type engines struct {
	policies []policy
	webhooks []webhook
	world    protectdecide.World
}

func newEngines(t *testing.T, set *rules.Set[protectspec.Rule]) engines {
	t.Helper()
	world := quiet(protectspec.Settings{})
	policies, webhooks := compiled(t, set, world)
	return engines{policies, webhooks, world}
}

// refuse reports whether the engines, which must agree, refuse the request. A
// webhook refuses by being asked, as it does in an outage.
func (e engines) refuse(t *testing.T, r request, held overrides) bool {
	t.Helper()
	refused, asked := false, false
	for _, p := range e.policies {
		refusals, failures := p.judge(t, r.attributes(), r.namespace(e.world), held)
		require.Empty(t, failures)
		refused = refused || len(refusals) > 0
	}
	for _, w := range e.webhooks {
		asked = w.asked(t, r.attributes(), held) || asked
	}
	require.Equal(t, asked, refused, "webhooks, and policies")
	return refused
}
