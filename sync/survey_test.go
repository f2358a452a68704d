package sync

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOnlyACloneThatWasLeftBehindIsRetained(t *testing.T) {
	inSync := func(*State) {}
	deleting := func(s *State) { s.Clone.DeletionTimestamp = &metav1.Time{} }
	unmatched := func(s *State) {
		s.Former = testRule(t, func(c *Config) { c.Namespaces.Include = []string{"team-b"} })
	}
	unclaimed := func(s *State) { s.Claims = nil }
	for sentence, test := range map[string]struct {
		change []func(*State)
		want   Standing
		fine   bool
	}{
		"a clone that is right is in sync":                              {[]func(*State){inSync}, Current, true},
		"one whose rule no longer exists is retained":                   {[]func(*State){unclaimed, func(s *State) { s.Former = nil }}, Retained, true},
		"one in a namespace that no longer matches is to be removed":    {[]func(*State){unclaimed, unmatched}, Removing, false},
		"one whose source no longer exists is retained":                 {[]func(*State){func(s *State) { s.Claims[0].Source = nil }}, Retained, true},
		"one that is being deleted and is wanted is behind":             {[]func(*State){deleting}, Behind, false},
		"one that is being deleted and is not wanted is on its way out": {[]func(*State){unclaimed, deleting}, Removing, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			rule, source := testRule(t, nil), testSource(t, map[string]string{"k": "v"})
			state := stateOf(rule, source, &Namespace{Name: "team-a"})
			state.Clone, state.Former = cloneOf(t, rule, source, "team-a"), rule
			for _, change := range test.change {
				change(&state)
			}
			got := standing(state, Plan(state))
			require.Equal(t, test.want, got)
			require.Equal(t, test.fine, got.IsFine())
		})
	}
}
