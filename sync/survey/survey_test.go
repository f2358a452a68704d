package survey

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/sync/internal/plantest"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/spec"
)

func TestOnlyACloneThatWasLeftBehindIsRetained(t *testing.T) {
	inSync := func(*plan.State) {}
	deleting := plantest.Terminate
	unmatched := func(s *plan.State) {
		s.Former = synctest.Rule(t, func(c *spec.Config) { c.Namespaces.Include = []string{"team-b"} })
	}
	unclaimed := func(s *plan.State) { s.Candidates = nil }
	for sentence, test := range map[string]struct {
		change []func(*plan.State)
		want   Status
		fine   bool
	}{
		"a clone that is right is in sync":                              {[]func(*plan.State){inSync}, Current, true},
		"one whose rule no longer exists is retained":                   {[]func(*plan.State){unclaimed, func(s *plan.State) { s.Former = nil }}, Retained, true},
		"one in a namespace that no longer matches is to be removed":    {[]func(*plan.State){unclaimed, unmatched}, Removing, false},
		"one whose source no longer exists is retained":                 {[]func(*plan.State){func(s *plan.State) { s.Candidates[0].Source = nil }}, Retained, true},
		"one that is being deleted and is wanted is behind":             {[]func(*plan.State){deleting}, Behind, false},
		"one that is being deleted and is not wanted is on its way out": {[]func(*plan.State){unclaimed, deleting}, Removing, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			rule, source := synctest.Rule(t, nil), synctest.Source(t, map[string]string{"k": "v"})
			state := plantest.StateOf(rule, source, &plan.Namespace{Name: "team-a"})
			state.Clone, state.Former = plantest.CloneOf(t, rule, source, "team-a"), rule
			for _, change := range test.change {
				change(&state)
			}
			got := statusOf(state, plan.Plan(state))
			require.Equal(t, test.want, got)
			require.Equal(t, test.fine, got.IsFine())
		})
	}
}
