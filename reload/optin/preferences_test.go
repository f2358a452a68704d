package optin_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
)

func TestOwnersWishes(t *testing.T) {
	tests := map[string]struct {
		annotations map[string]string
		want        optin.Preferences
		fault       string
	}{
		"no annotation leaves it to the rule":      {},
		"Auto overrides":                           {annotations: map[string]string{mark.Reload: "Auto"}, want: optin.Preferences{How: spec.Auto}},
		"Restart overrides":                        {annotations: map[string]string{mark.Reload: "Restart"}, want: optin.Preferences{How: spec.Restart}},
		"Refresh overrides":                        {annotations: map[string]string{mark.Reload: "Refresh"}, want: optin.Preferences{How: spec.Refresh}},
		"Off is nothing":                           {annotations: map[string]string{mark.Reload: "Off"}, want: optin.Preferences{How: spec.None}},
		"an unknown value leaves it to the rule":   {annotations: map[string]string{mark.Reload: "always"}, fault: mark.Reload},
		"None is the rule's word, not the owner's": {annotations: map[string]string{mark.Reload: "None"}, fault: mark.Reload},
		"only these keys count":                    {annotations: map[string]string{mark.ReloadKeys: "b,a"}, want: optin.Preferences{}.WithKeys("a", "b")},
		"unreadable keys leave all of them":        {annotations: map[string]string{mark.ReloadKeys: "a b"}, fault: mark.ReloadKeys},
		"a list of objects is no wish of its own":  {annotations: map[string]string{mark.ReloadOn: "Secret/s"}},
		"an unreadable list is told":               {annotations: map[string]string{mark.ReloadOn: "s"}, fault: mark.ReloadOn},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			of, faults := optin.ReadPreferences(&metav1.ObjectMeta{Namespace: "ns", Annotations: test.annotations}, nil, spec.Settings{})
			require.Equal(t, test.want, of)
			if test.fault == "" {
				require.Empty(t, faults)
				return
			}
			require.Len(t, faults, 1)
			require.Equal(t, test.fault, faults[0].Annotation)
		})
	}
}

func TestWhatIsSaidOfTheTopmostOwnerHoldsForWhatItControls(t *testing.T) {
	ofOne := func(annotations map[string]string) optin.Preferences {
		of, faults := optin.ReadPreferences(&metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{"own": "label"}, Annotations: annotations}, nil, spec.Settings{})
		require.Empty(t, faults)
		return of
	}
	for sentence, test := range map[string]struct{ top, own, want map[string]string }{
		"nothing leaves all as it is": {own: map[string]string{mark.Reload: "Restart", mark.ReloadKeys: "a"}, want: map[string]string{mark.Reload: "Restart", mark.ReloadKeys: "a"}},
		"Off":                         {top: map[string]string{mark.Reload: "Off"}, own: map[string]string{mark.Reload: "Auto"}, want: map[string]string{mark.Reload: "Off"}},
		"Auto, which asks for all":    {top: map[string]string{mark.Reload: "Auto"}, want: map[string]string{mark.Reload: "Auto"}},
		"keys, and they alone": {
			top: map[string]string{mark.ReloadKeys: "b"}, own: map[string]string{mark.Reload: "Refresh", mark.ReloadKeys: "a"},
			want: map[string]string{mark.Reload: "Refresh", mark.ReloadKeys: "b"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			require.Equal(t, ofOne(test.want), ofOne(test.own).InheritFrom(ofOne(test.top)))
		})
	}
	t.Run("other tools are not told any more", func(t *testing.T) {
		own := optin.Preferences{Named: []object.Ref{{Name: "s"}}, Patterns: []optin.Pattern{{}}, Debounce: 1}
		require.Equal(t, optin.Preferences{How: spec.None}, own.InheritFrom(ofOne(map[string]string{mark.Reload: "Off"})))
	})
}

func TestOnlyTheKeysThatCount(t *testing.T) {
	tests := map[string]struct {
		wanted, consumed, want []string
		nothing                bool
	}{
		"all of all":         {},
		"all of some":        {consumed: []string{"a"}, want: []string{"a"}},
		"some of all":        {wanted: []string{"a", "b"}, want: []string{"a", "b"}},
		"some of some":       {wanted: []string{"a", "b"}, consumed: []string{"b", "c"}, want: []string{"b"}},
		"none that is there": {wanted: []string{"a"}, consumed: []string{"b"}, want: []string{"b"}, nothing: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := refs.Reference{Kind: object.Secret, Name: "s", Keys: test.consumed, Required: test.consumed, Mode: refs.Env}
			narrowed, counts := optin.Preferences{}.WithKeys(test.wanted...).Narrowed(r)
			require.Equal(t, test.want, narrowed.Keys)
			require.Equal(t, test.consumed, narrowed.Required, "what the pods need, they need all the same")
			require.Equal(t, !test.nothing, counts)
			require.Equal(t, test.consumed, r.Keys, "a reference shared with a cache must not be modified")
		})
	}
}

func TestListedObjectsAreReferences(t *testing.T) {
	meta := &metav1.ObjectMeta{Namespace: "ns", Annotations: map[string]string{mark.ReloadOn: "Secret/s, ConfigMap/c"}}
	require.Equal(t, []refs.Reference{
		{Kind: object.ConfigMap, Name: "c", Mode: refs.Listed, Optional: true}, {Kind: object.Secret, Name: "s", Mode: refs.Listed, Optional: true},
	}, optin.Listed(meta))
	meta.Annotations[mark.ReloadOn] = "Secret/s,c"
	require.Empty(t, optin.Listed(meta))
	require.Empty(t, optin.Listed(&metav1.ObjectMeta{}))
}
