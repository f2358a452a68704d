package app

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/page/grid"
	"github.com/headwater-k8s/headwater/internal/rulestatus/keeper"
	"github.com/headwater-k8s/headwater/reload/report"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/sync"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/survey"
)

func TestThePageHasAWordForEveryStanding(t *testing.T) {
	seen := map[grid.State]bool{}
	for _, standing := range survey.Statuses {
		state, known := grid.StateNamed(string(standing))
		require.True(t, known, standing)
		require.False(t, seen[state], standing)
		require.NotEqual(t, grid.Empty, state, standing)
		seen[state] = true
	}
}

func TestAFindingIsSaidInThePagesWords(t *testing.T) {
	since := time.Unix(1000, 0)
	target := object.Ref{Kind: object.Secret, Namespace: "team-a", Name: "blogsecret"}
	source := object.Ref{Kind: object.Secret, Namespace: "platform", Name: "blogsecret"}
	place := names{}.place(survey.CloneStatus{
		Rule: "blog", Source: source, Target: target, Status: survey.Conflicting, Since: since,
		Decision: plan.Decision{Action: plan.Refuse, Reason: plan.Conflict, Message: "somebody else's"},
	})
	require.Equal(t, grid.Place{
		Target: grid.Target{Kind: "Secret", Namespace: "team-a", Name: "blogsecret"}, Rule: "blog", Source: "Secret/platform/blogsecret",
		State: grid.Conflict, Reason: "Conflict", Why: "somebody else's", Since: since,
	}, place)
}

func TestTheOwnerIsNamedWhereTheOwnerAsked(t *testing.T) {
	for name, tc := range map[string]struct {
		told report.Reloaded
		want string
	}{
		"a rule":    {report.Reloaded{Step: reloadspec.StepRestart, Rule: "blog", Changed: []string{"a", "b"}}, "changed: a, b"},
		"the owner": {report.Reloaded{Step: reloadspec.StepRestart, Changed: []string{"a"}}, "asked for by its owner; changed: a"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, whyReloaded(tc.told)) })
	}
}

func TestWithoutAPageNobodyLooksOn(t *testing.T) {
	settings := testSettings()
	settings.Page = false
	touched := &keeper.Touched{}
	require.Equal(t, observers{Sync: sync.Observers{touched}}, newObservers(newFeed(settings), touched))
}
