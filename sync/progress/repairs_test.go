package progress_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/internal/plantest"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
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
		want   progress.Cause
	}{
		"a value was edited":          {state: edit, want: "edited"},
		"the clone was deleted":       {state: gone, want: progress.Deleted},
		"the label was stripped":      {state: func(_ *testing.T, s *plan.State) { plantest.Unlabel(s) }, want: progress.Unmarked},
		"the annotations were, too":   {state: func(_ *testing.T, s *plan.State) { s.Clone.Annotations, s.Clone.MadeByUs = nil, true }, want: progress.Unmarked},
		"an annotation was edited":    {state: func(_ *testing.T, s *plan.State) { s.Clone.Annotations[mark.SourceUID] = "other" }, want: "edited"},
		"it was made immutable":       {state: func(t *testing.T, s *plan.State) { t.Helper(); edit(t, s); s.Clone.Immutable = true }, want: "edited"},
		"its type was changed":        {state: func(_ *testing.T, s *plan.State) { s.Clone.Type = "kubernetes.io/basic-auth" }, want: "edited"},
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
			got, healed := progress.RepairOf(state, plan.Plan(state), changes(was))
			require.Equal(t, test.want, got)
			require.Equal(t, test.want != "", healed)
		})
	}
}

func TestAPlaceThatNobodyChangedIsNotHealed(t *testing.T) {
	state := plantest.StateOf(synctest.Rule(t, nil), synctest.Source(t, nil), &plan.Namespace{Name: "team-a"})
	clone, removed := plantest.CloneOf(t, state.Candidates[0].Rule, state.Candidates[0].Source, "team-a"), progress.NewTracker(0)
	removed.Settle(progress.Outcome{State: state, Decision: plan.Decision{Action: plan.Remove}}, progress.ExternalChange{}, time.Unix(1000, 0))
	removed.NoteChange(clone)
	for sentence, since := range map[string]progress.ExternalChange{
		"a new namespace, or a start":    {},
		"a clone that Headwater removed": removed.ChangeOf(state.Target),
	} {
		t.Run(sentence, func(t *testing.T) {
			decision := plan.Plan(state)
			require.Equal(t, plan.Create, decision.Action)
			_, healed := progress.RepairOf(state, decision, since)
			require.False(t, healed)
		})
	}
}

func TestAChangeIsKnownUntilItsOutcomeIs(t *testing.T) {
	state := plantest.StateOf(synctest.Rule(t, nil), synctest.Source(t, map[string]string{"user": "blog"}), &plan.Namespace{Name: "team-a"})
	versions := make([]*object.Digested, 4)
	for i := range versions {
		versions[i] = plantest.CloneOf(t, state.Candidates[0].Rule, state.Candidates[0].Source, "team-a")
		versions[i].ResourceVersion = strconv.Itoa(i)
	}
	for _, drifted := range versions[:3] {
		drifted.Digests = nil
	}
	target, c := state.Target, progress.NewTracker(0)
	written, waits := plan.Decision{Action: plan.Update}, plan.Decision{Action: plan.Leave, Reason: plan.CloneTerminating}
	settle := func(seen progress.ExternalChange, decision plan.Decision) bool {
		_, repaired := c.Settle(progress.Outcome{State: state, Decision: decision}, seen, time.Unix(1000, 0))
		return repaired
	}

	c.NoteChange(versions[0])
	c.NoteChange(versions[1])
	c.NoteChange(versions[2])
	seen := c.ChangeOf(target)
	require.Equal(t, changes(versions[0], versions[2]), seen, "either may be the one that was right")
	require.False(t, settle(seen, waits), "recreated once it is deleted")
	require.Equal(t, seen, c.ChangeOf(target))

	c.NoteChange(versions[3])
	require.False(t, settle(seen, written), "only the later change was of a clone that was right")
	later := changes(versions[3])
	require.Equal(t, later, c.ChangeOf(target), "what came while it was written is for the next look")
	require.True(t, settle(later, written))
	require.Zero(t, c.ChangeOf(target))
	require.False(t, settle(progress.ExternalChange{}, written))
	require.Zero(t, c.ChangeOf(target), "of a place that nothing happened to, nothing is kept")

	c.NoteChange(versions[3])
	require.False(t, settle(progress.ExternalChange{}, plan.Decision{Action: plan.Leave, Reason: plan.InSync}), "the look was at what was right")
	require.Equal(t, later, c.ChangeOf(target))
	require.True(t, settle(progress.ExternalChange{}, written), "the look saw the change before it was told of")
	require.Zero(t, c.ChangeOf(target))
}

// changes returns what a tracker knows after a clone was changed from each of these.
func changes(was ...*object.Digested) progress.ExternalChange {
	tracker := progress.NewTracker(0)
	for _, clone := range was {
		tracker.NoteChange(clone)
	}
	return tracker.ChangeOf(was[0].Ref())
}
