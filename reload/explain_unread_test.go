package reload

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8stesting "k8s.io/client-go/testing"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/explain"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// A user who may not list Secrets must not be told that one is missing, nor that no rule
// reloads it.
func TestExplainingWithoutPermissionForSecrets(t *testing.T) {
	scope := kube.Scope{Namespace: "team", Lacking: []kube.Permission{{Resource: "secrets", Verbs: []string{"list"}}}}
	elsewhere, err := rules.Namespaces{Include: []string{"other"}}.Compile()
	require.NoError(t, err)
	everywhere, err := rules.Namespaces{Include: []string{"*"}}.Compile()
	require.NoError(t, err)
	bySelector := testRule(t, spec.Auto).ClonedAs("", everywhere)
	bySelector.Base, err = rules.NewBase("base", rules.Source{
		Kind: object.Secret, Namespace: "platform", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"shared": "yes"}},
	})
	require.NoError(t, err)
	unknown := explain.Use{OnChange: explain.StepUnknown, Reason: explain.ReasonRulesUnread, Status: decide.Unknown}
	for sentence, test := range map[string]struct {
		rules        []spec.Rule
		withoutRules bool
		step         spec.Step
		want         explain.Use
	}{
		"a rule clones it here": {
			[]spec.Rule{testRule(t, spec.Auto).ClonedAs("", everywhere)},
			false, explain.StepUnknown,
			explain.Use{Rule: "base", OnChange: spec.StepRestart, Reason: spec.ReasonReadAtStart, Status: decide.Unknown},
		},
		"a rule clones it elsewhere": {
			[]spec.Rule{testRule(t, spec.Auto).ClonedAs("", elsewhere)},
			false, spec.StepNothing,
			explain.Use{OnChange: spec.StepNothing, Reason: spec.ReasonUngoverned, Status: decide.Untracked},
		},
		"a rule selects its sources by labels": {[]spec.Rule{bySelector}, false, explain.StepUnknown, unknown},
		"the rules are unknown, too":           {nil, true, explain.StepUnknown, unknown},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := newScopedFixture(t, scope, cloneOf("1"), reloadtest.Web(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
			f.client.PrependReactor("list", "secrets", func(k8stesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil)
			})
			f.live.Swap(rules.NewSet(test.rules...))
			observer := f.observing(spec.Settings{})
			observer.WithoutRules = test.withoutRules
			e, found, err := observer.Explain(t.Context(), kinds.KindDeployment, "team", "web", reloadtest.Birth)
			require.NoError(t, err)
			require.True(t, found)
			require.Equal(t, test.step, e.Step, e.Reason)
			require.Len(t, e.Uses, 1)
			use := e.Uses[0]
			require.Equal(t, test.want, explain.Use{Rule: use.Rule, OnChange: use.OnChange, Reason: use.Reason, Status: use.Status})
		})
	}
}
