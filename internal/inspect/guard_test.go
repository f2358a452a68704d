package inspect

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"

	protectspec "github.com/headwater-k8s/headwater/protect/spec"
)

type (
	policy  = admissionregistrationv1.ValidatingAdmissionPolicy
	binding = admissionregistrationv1.ValidatingAdmissionPolicyBinding
)

// installed returns the policies and bindings of the chart, by their names.
func installed(t *testing.T) (policies map[string]*policy, bindings map[string]*binding) {
	t.Helper()
	manifest, err := os.ReadFile("../../deploy/rbac.yaml")
	require.NoError(t, err)
	policies, bindings = map[string]*policy{}, map[string]*binding{}
	for text := range strings.SplitSeq(string(manifest), "\n---\n") {
		if !strings.Contains(text, "kind: ValidatingAdmissionPolicy") {
			continue
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(text), nil, nil)
		require.NoError(t, err)
		switch object := object.(type) {
		case *policy:
			policies[object.Name] = object
		case *binding:
			bindings[object.Name] = object
		}
	}
	return policies, bindings
}

func TestAPolicyCountsOnlyAsTheChartHasIt(t *testing.T) {
	const notGuarded, notLimited = "so who may edit in namespace headwater-system is Headwater", "so who has a token of Headwater may write any Secret and ConfigMap"
	guard := func(change func(*admissionregistrationv1.MatchResources)) func(map[string]*policy, map[string]*binding) {
		return func(policies map[string]*policy, _ map[string]*binding) {
			change(policies[protectspec.GuardName].Spec.MatchConstraints)
		}
	}
	of := func(name string, change func(*policy, *binding)) func(map[string]*policy, map[string]*binding) {
		return func(policies map[string]*policy, bindings map[string]*binding) {
			change(policies[name], bindings[name])
		}
	}
	for sentence, test := range map[string]struct {
		change func(map[string]*policy, map[string]*binding)
		notes  []string
	}{
		"as it is": {change: func(map[string]*policy, map[string]*binding) {}},
		"without its policy": {
			func(policies map[string]*policy, _ map[string]*binding) { delete(policies, protectspec.GuardName) },
			[]string{"policy headwater-guard is not in force, " + notGuarded},
		},
		"for another namespace": {guard(func(m *admissionregistrationv1.MatchResources) {
			m.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "other"}}
		}), []string{notGuarded}},
		"for labelled objects alone": {guard(func(m *admissionregistrationv1.MatchResources) {
			m.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}), []string{notGuarded}},
		"without what it leaves out": {guard(func(m *admissionregistrationv1.MatchResources) {
			m.ExcludeResourceRules = m.ResourceRules[:1]
		}), []string{notGuarded}},
		"about Secrets alone": {guard(func(m *admissionregistrationv1.MatchResources) {
			m.ResourceRules = m.ResourceRules[:1]
			m.ResourceRules[0].Resources = []string{"secrets"}
		}), []string{notGuarded}},
		"about one object": {guard(func(m *admissionregistrationv1.MatchResources) {
			m.ResourceRules[0].ResourceNames = []string{"one"}
		}), []string{notGuarded}},
		"about all but subresources": {guard(func(m *admissionregistrationv1.MatchResources) {
			for i := range m.ResourceRules {
				m.ResourceRules[i].APIGroups, m.ResourceRules[i].Resources = []string{"*"}, []string{"*"}
			}
		}), []string{notGuarded}},
		"without deletes": {guard(func(m *admissionregistrationv1.MatchResources) {
			for i := range m.ResourceRules {
				m.ResourceRules[i].Operations = slices.DeleteFunc(m.ResourceRules[i].Operations, func(o admissionregistrationv1.OperationType) bool { return o == admissionregistrationv1.Delete })
			}
		}), []string{notGuarded}},
		"about updates alone": {guard(func(m *admissionregistrationv1.MatchResources) {
			m.ResourceRules[0].Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Update}
		}), []string{notGuarded}},
		"which fails open": {of(protectspec.GuardName, func(p *policy, _ *binding) {
			p.Spec.FailurePolicy = new(admissionregistrationv1.Ignore)
		}), []string{notGuarded}},
		"which only warns": {of(protectspec.GuardName, func(_ *policy, b *binding) {
			b.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn}
		}), []string{notGuarded}},
		"with one more condition": {of(protectspec.GuardName, func(p *policy, _ *binding) {
			p.Spec.MatchConditions = append(p.Spec.MatchConditions, admissionregistrationv1.MatchCondition{Name: "never", Expression: "false"})
		}), []string{notGuarded}},
		"whose writers are not known": {of(protectspec.GuardName, func(p *policy, _ *binding) {
			p.Annotations = nil
		}), []string{"it is not known who may change Headwater's workloads"}},
		"and the limit for some namespaces": {of(protectspec.LimitName, func(p *policy, _ *binding) {
			p.Spec.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}), []string{notLimited}},
		"and the limit of no updates": {
			func(_ map[string]*policy, bindings map[string]*binding) {
				delete(bindings, protectspec.LimitUpdatesName)
			},
			[]string{"policy headwater-limit is not in force, " + notLimited},
		},
	} {
		t.Run("the guard "+sentence, func(t *testing.T) {
			policies, bindings := installed(t)
			test.change(policies, bindings)
			var objects []runtime.Object
			for _, one := range policies {
				objects = append(objects, one)
			}
			for _, one := range bindings {
				objects = append(objects, one)
			}
			found, err := policiesInForce(t.Context(), fake.NewClientset(objects...), "headwater-system")
			require.NoError(t, err)
			require.Len(t, found.notes, len(test.notes), "%v", found.notes)
			for i, note := range test.notes {
				require.Contains(t, found.notes[i], note)
				require.Equal(t, !strings.Contains(note, notGuarded), found.inForce)
			}
		})
	}
}
