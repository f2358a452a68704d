package app

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/page/grid"
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

func TestThePageRemembersWhatHappenedAndNotWhatLasts(t *testing.T) {
	about := &corev1.ObjectReference{Kind: "Secret", Namespace: "platform", Name: "s"}
	event := events.Event{Rule: "r", Reason: "StagePassed", Note: "because", About: about}
	require.Equal(t, &grid.Note{What: "StagePassed", Rule: "r", Names: []string{"Secret/platform/s"}, Why: "because"}, noteOf(event))
	event.About = &corev1.ObjectReference{Kind: "Namespace", Name: "own"}
	require.Equal(t, []string{"Namespace/own"}, noteOf(event).Names)
	event.Persisting = true
	require.Nil(t, noteOf(event))
	require.Nil(t, noteOf(events.Event{Reason: "Denied"}), "about nothing that is known")
}

func TestWithoutAPageNobodyLooksOn(t *testing.T) {
	settings := testSettings()
	settings.Page = false
	require.Nil(t, newObserver(newFeed(settings, nil)))
}
