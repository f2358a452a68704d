package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/internal/plantest"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/spec"
)

func TestLeftoversAreBoundToTheClonesAsTheyWere(t *testing.T) {
	at := func(kind object.Kind, version string) *object.Digested {
		return object.NewDigested(metav1.ObjectMeta{ResourceVersion: version}, object.Common{Kind: kind})
	}
	left := plan.NewLeftovers(plan.PruneClones, []*object.Digested{at(object.Secret, "9"), at(object.Secret, "10"), at(object.ConfigMap, "7")})
	require.Equal(t, &plan.Leftovers{Fate: plan.PruneClones, Clones: 3, Revisions: plan.Revisions{object.Secret: "10", object.ConfigMap: "7"}}, left)
	for sentence, test := range map[string]struct {
		clone *object.Digested
		want  plan.LeftoverFate
	}{
		"one of them":                          {at(object.Secret, "9"), plan.PruneClones},
		"the latest of them":                   {at(object.Secret, "10"), plan.PruneClones},
		"one that was written since":           {at(object.Secret, "11"), ""},
		"one of the other kind, written since": {at(object.ConfigMap, "8"), ""},
		"a version that cannot be compared":    {at(object.Secret, "x"), ""},
	} {
		t.Run(sentence, func(t *testing.T) { require.Equal(t, test.want, left.FateOf(test.clone)) })
	}
	require.Empty(t, plan.NewLeftovers(plan.PruneClones, nil).FateOf(at(object.Secret, "1")), "no clone of this kind was shown")
	var none *plan.Leftovers
	require.Empty(t, none.FateOf(at(object.Secret, "1")))
}

func TestOnlyClonesOfARuleThatIsGoneAreReleasedOrPruned(t *testing.T) {
	toDelete := func(s *plan.State) { s.Clone.Annotations[mark.OnRuleRemoved] = string(spec.Delete) }
	for sentence, test := range map[string]struct {
		asked  plan.LeftoverFate
		change func(*testing.T, *plan.State)
		action plan.Action
		reason plan.Reason
	}{
		"pruned, its clone is deleted":                       {plan.PruneClones, nil, plan.Remove, plan.Pruned},
		"released, its clone stays without marks":            {plan.ReleaseClones, nil, plan.Release, plan.Released},
		"released, a clone that is held to be deleted stays": {plan.ReleaseClones, func(_ *testing.T, s *plan.State) { toDelete(s) }, plan.Release, plan.Released},
		"not asked about, it is retained":                    {"", nil, plan.Leave, plan.RuleRemoved},
		"a clone that is being deleted needs nothing":        {plan.ReleaseClones, func(_ *testing.T, s *plan.State) { plantest.Terminate(s) }, plan.Leave, plan.CloneTerminating},
		"a namespace that is being deleted needs nothing":    {plan.PruneClones, func(_ *testing.T, s *plan.State) { s.Namespace.Terminating = true }, plan.Leave, plan.NamespaceGone},
		"a clone of a rule in force stays":                   {plan.PruneClones, func(t *testing.T, s *plan.State) { t.Helper(); s.Former = synctest.Rule(t, nil) }, plan.Leave, plan.SourceDeleted},
	} {
		t.Run(sentence, func(t *testing.T) {
			rule, source := synctest.Rule(t, nil), synctest.Source(t, map[string]string{"k": "v"})
			state := stateOf(rule, source, &plan.Namespace{Name: "team-a"})
			state.Clone, state.Candidates, state.Former, state.Requested = cloneOf(t, rule, source, "team-a"), nil, nil, test.asked
			if test.change != nil {
				test.change(t, &state)
			}
			decision := plan.Plan(state)
			require.Equal(t, test.action, decision.Action)
			require.Equal(t, test.reason, decision.Reason)
			require.False(t, decision.Reason == plan.Pruned && decision.IsGuarded(), "a person asked for it by name")
		})
	}
}
