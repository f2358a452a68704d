package progress

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/internal/plantest"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/plan"
)

func TestAHealIsAWriteToWhatWasRight(t *testing.T) {
	// edit is what somebody made of the clone that the state has.
	edit := func(t *testing.T, s *plan.State) {
		t.Helper()
		other := plantest.CloneOf(t, s.Candidates[0].Rule, synctest.Source(t, map[string]string{"user": "forged"}), "team-a")
		s.Clone.Digests = other.Digests
	}
	gone := func(_ *testing.T, s *plan.State) { s.Clone = nil }
	for sentence, test := range map[string]struct {
		// before makes another clone of the one that was right.
		before func(*object.Digested)
		state  func(*testing.T, *plan.State)
		want   Cause
	}{
		"a value was edited":          {state: edit, want: edited},
		"the clone was deleted":       {state: gone, want: Deleted},
		"the label was stripped":      {state: func(_ *testing.T, s *plan.State) { plantest.Unlabel(s) }, want: Unmarked},
		"the annotations were, too":   {state: func(_ *testing.T, s *plan.State) { s.Clone.Annotations, s.Clone.MadeByUs = nil, true }, want: Unmarked},
		"an annotation was edited":    {state: func(_ *testing.T, s *plan.State) { s.Clone.Annotations[mark.SourceUID] = "other" }, want: edited},
		"it was made immutable":       {state: func(t *testing.T, s *plan.State) { t.Helper(); edit(t, s); s.Clone.Immutable = true }, want: edited},
		"its type was changed":        {state: func(_ *testing.T, s *plan.State) { s.Clone.Type = "kubernetes.io/basic-auth" }, want: edited},
		"nothing was":                 {state: func(*testing.T, *plan.State) {}},
		"somebody's label was put on": {state: func(_ *testing.T, s *plan.State) { s.Clone.Labels["team"] = "a" }},
		"the source has changed": {state: func(t *testing.T, s *plan.State) {
			t.Helper()
			s.Candidates[0].Source = synctest.Source(t, map[string]string{"user": "new"})
		}},
		"the source has changed, and so has the clone": {state: func(t *testing.T, s *plan.State) {
			t.Helper()
			edit(t, s)
			s.Candidates[0].Source = synctest.Source(t, map[string]string{"user": "new"})
		}},
		"the type of the source has changed": {state: func(t *testing.T, s *plan.State) {
			t.Helper()
			source := synctest.Source(t, map[string]string{"user": "blog"})
			source.Content.Type = "kubernetes.io/basic-auth"
			s.Candidates[0].Source = source
		}},
		"the rule has changed": {state: func(_ *testing.T, s *plan.State) {
			changed := *s.Candidates[0].Rule
			changed.Target.Labels = map[string]string{"more": "x"}
			s.Candidates[0].Rule = &changed
		}},
		"the source is gone and the clone edited": {state: func(t *testing.T, s *plan.State) {
			t.Helper()
			edit(t, s)
			s.Candidates[0].Source = nil
		}},
		"it was not right before it was edited": {
			before: func(was *object.Digested) { was.Digests = nil }, state: edit,
		},
		"it was not right before it was deleted": {
			before: func(was *object.Digested) { was.Digests = nil }, state: gone,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			state := plantest.StateOf(synctest.Rule(t, nil), synctest.Source(t, map[string]string{"user": "blog"}), &plan.Namespace{Name: "team-a"})
			plantest.InSync(t, &state)
			was := plantest.CloneOf(t, state.Candidates[0].Rule, state.Candidates[0].Source, "team-a")
			if test.before != nil {
				test.before(was)
			}
			test.state(t, &state)
			got, healed := RepairOf(state, plan.Plan(state), ExternalChange{was, was})
			require.Equal(t, test.want, got)
			require.Equal(t, test.want != "", healed)
		})
	}
}

func TestAPlaceThatNobodyChangedIsNotHealed(t *testing.T) {
	state := plantest.StateOf(synctest.Rule(t, nil), synctest.Source(t, nil), &plan.Namespace{Name: "team-a"})
	clone, removed := plantest.CloneOf(t, state.Candidates[0].Rule, state.Candidates[0].Source, "team-a"), NewTracker()
	require.Zero(t, removed.takeChange(state.Target, ExternalChange{}, plan.Decision{Action: plan.Remove}))
	removed.NoteChange(clone)
	for sentence, since := range map[string]ExternalChange{
		"a new namespace, or a start":    {},
		"a clone that Headwater removed": removed.ChangeOf(state.Target),
	} {
		t.Run(sentence, func(t *testing.T) {
			decision := plan.Plan(state)
			require.Equal(t, plan.Create, decision.Action)
			_, healed := RepairOf(state, decision, since)
			require.False(t, healed)
		})
	}
}

func TestAChangeIsKnownUntilItsOutcomeIs(t *testing.T) {
	versions := make([]*object.Digested, 4)
	for i := range versions {
		versions[i] = &object.Digested{Kind: object.Secret, ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "s"}}
	}
	target, c := versions[0].Ref(), NewTracker()
	written, waits := plan.Decision{Action: plan.Update}, plan.Decision{Action: plan.Leave, Reason: plan.CloneTerminating}

	c.NoteChange(versions[0])
	c.NoteChange(versions[1])
	c.NoteChange(versions[2])
	seen := c.ChangeOf(target)
	require.Same(t, versions[0], seen.first, "it may be the one that was right")
	require.Same(t, versions[2], seen.last, "or this, when it was healed in between")
	require.Zero(t, c.takeChange(target, seen, waits), "recreated once it is deleted")
	require.Equal(t, seen, c.ChangeOf(target))

	c.NoteChange(versions[3])
	require.Equal(t, seen, c.takeChange(target, seen, written))
	later := ExternalChange{versions[3], versions[3]}
	require.Equal(t, later, c.ChangeOf(target), "what came while it was written is for the next look")
	require.Equal(t, later, c.takeChange(target, later, written))
	require.Empty(t, c.changes)
	require.Zero(t, c.takeChange(target, ExternalChange{}, written))
	require.Empty(t, c.changes, "of a place that nothing happened to, nothing is kept")

	c.NoteChange(versions[1])
	late := ExternalChange{versions[1], versions[1]}
	require.Zero(t, c.takeChange(target, ExternalChange{}, plan.Decision{Action: plan.Leave, Reason: plan.InSync}), "the look was at what was right")
	require.Equal(t, late, c.ChangeOf(target))
	require.Equal(t, late, c.takeChange(target, ExternalChange{}, written), "the look saw the change before it was told of")
	require.Empty(t, c.changes)
}
