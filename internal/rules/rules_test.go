package rules

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/internal/object"
)

func TestNamespacesMatch(t *testing.T) {
	for sentence, test := range map[string]struct {
		namespaces Namespaces
		name       string
		labels     map[string]string
		want       bool
	}{
		"by default any namespace":             {name: "team-a", want: true},
		"by default not kube-system":           {name: "kube-system"},
		"never the one named so":               {name: "own"},
		"an include by name":                   {namespaces: Namespaces{Include: []string{"team-a"}}, name: "team-a", want: true},
		"an include does not match a prefix":   {namespaces: Namespaces{Include: []string{"team"}}, name: "team-a"},
		"a glob in the middle":                 {namespaces: Namespaces{Include: []string{"t*-a"}}, name: "team-a", want: true},
		"exclude wins over include":            {namespaces: Namespaces{Include: []string{"*"}, Exclude: []string{"team-?"}}, name: "team-a"},
		"an empty exclude reaches kube-system": {namespaces: Namespaces{Exclude: []string{}}, name: "kube-system", want: true},
		"the selector is and-ed with the names": {
			namespaces: Namespaces{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/Name": "x"}}},
			name:       "team-a", labels: map[string]string{"app.kubernetes.io/Name": "y"},
		},
		"the selector matches labels as written": {
			namespaces: Namespaces{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/Name": "x"}}},
			name:       "team-a", labels: map[string]string{"app.kubernetes.io/Name": "x"}, want: true,
		},
		"an empty selector matches all": {namespaces: Namespaces{Selector: &metav1.LabelSelector{}}, name: "team-a", want: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			test.namespaces.Default()
			require.Empty(t, test.namespaces.Validate(field.NewPath("namespaces")))
			matcher, err := test.namespaces.Compile("own")
			require.NoError(t, err)
			require.Equal(t, test.want, matcher.Matches(test.name, test.labels))
		})
	}
}

func TestNamespacesReportEveryBadPattern(t *testing.T) {
	bad := Namespaces{Include: []string{"[", "ok"}, Exclude: []string{""}, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}}
	errs := bad.Validate(field.NewPath("namespaces"))
	require.Len(t, errs, 3)
	require.Equal(t, "namespaces.include[0]", errs[0].Field)
}

type testRule struct{ Base }

func TestSetFindsRulesBySourceInFileOrder(t *testing.T) {
	source := Source{Kind: object.Secret, Namespace: "p", Name: "s"}
	first, second := testRule{Base{Name: "first", Source: source}}, testRule{Base{Name: "second", Source: source}}
	set := NewSet(first, second)
	require.Equal(t, []testRule{first, second}, set.ForSource(source.Ref(), nil))
	require.Empty(t, set.ForSource(object.Ref{Kind: object.ConfigMap, Namespace: "p", Name: "s"}, nil))
	found, ok := set.Named("second")
	require.True(t, ok)
	require.Equal(t, second, *found)
}

func TestASourceIsSelectedByNameOrByLabel(t *testing.T) {
	named, err := NewBase("named", Source{Kind: object.Secret, Namespace: "p", Name: "s"})
	require.NoError(t, err)
	labelled, err := NewBase("labelled", Source{
		Kind: object.Secret, Namespace: "p", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"share": "yes"}},
	})
	require.NoError(t, err)
	share := map[string]string{"share": "yes"}
	for sentence, test := range map[string]struct {
		base   Base
		ref    object.Ref
		labels map[string]string
		want   bool
	}{
		"the name":                         {named, object.Ref{Kind: object.Secret, Namespace: "p", Name: "s"}, nil, true},
		"another name":                     {named, object.Ref{Kind: object.Secret, Namespace: "p", Name: "t"}, share, false},
		"the label, whatever the name":     {labelled, object.Ref{Kind: object.Secret, Namespace: "p", Name: "t"}, share, true},
		"no label":                         {labelled, object.Ref{Kind: object.Secret, Namespace: "p", Name: "t"}, nil, false},
		"the label in another namespace":   {labelled, object.Ref{Kind: object.Secret, Namespace: "q", Name: "t"}, share, false},
		"the label on another kind":        {labelled, object.Ref{Kind: object.ConfigMap, Namespace: "p", Name: "t"}, share, false},
		"the label with another value":     {labelled, object.Ref{Kind: object.Secret, Namespace: "p", Name: "t"}, map[string]string{"share": "no"}, false},
		"the name in another namespace":    {named, object.Ref{Kind: object.Secret, Namespace: "q", Name: "s"}, nil, false},
		"the name with any labels it has":  {named, object.Ref{Kind: object.Secret, Namespace: "p", Name: "s"}, share, true},
		"the name on an object of a kind ": {named, object.Ref{Kind: object.ConfigMap, Namespace: "p", Name: "s"}, nil, false},
	} {
		t.Run(sentence, func(t *testing.T) { require.Equal(t, test.want, test.base.Selects(test.ref, test.labels)) })
	}
}

func TestSwapTellsSubscribersUntilTheyLeave(t *testing.T) {
	live := NewLive(NewSet[testRule]())
	next := NewSet(testRule{Base{Name: "a"}})
	var calls int
	leave := live.Subscribe(func(old, new *Set[testRule]) {
		calls++
		require.Empty(t, old.All())
		require.Same(t, next, new)
	})
	live.Swap(next)
	require.Same(t, next, live.Load())
	leave()
	live.Swap(NewSet[testRule]())
	require.Equal(t, 1, calls)
}
