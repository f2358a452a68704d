package sync

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

func TestAHealIsAWriteToWhatWasRight(t *testing.T) {
	// edit is what somebody made of the clone that the state has.
	edit := func(t *testing.T, s *State) {
		t.Helper()
		other := cloneOf(t, s.Claims[0].Rule, testSource(t, map[string]string{"user": "forged"}), "team-a")
		s.Clone.Digests = other.Digests
	}
	gone := func(_ *testing.T, s *State) { s.Clone = nil }
	for sentence, test := range map[string]struct {
		// before makes another clone of the one that was right.
		before func(*object.Digested)
		state  func(*testing.T, *State)
		want   cause
	}{
		"a value was edited":          {state: edit, want: edited},
		"the clone was deleted":       {state: gone, want: deleted},
		"the label was stripped":      {state: func(_ *testing.T, s *State) { unlabel(s) }, want: unmarked},
		"the annotations were, too":   {state: func(_ *testing.T, s *State) { s.Clone.Annotations, s.Clone.MadeByUs = nil, true }, want: unmarked},
		"an annotation was edited":    {state: func(_ *testing.T, s *State) { s.Clone.Annotations[mark.SourceUID] = "other" }, want: edited},
		"it was made immutable":       {state: func(t *testing.T, s *State) { t.Helper(); edit(t, s); s.Clone.Immutable = true }, want: edited},
		"its type was changed":        {state: func(_ *testing.T, s *State) { s.Clone.Type = "kubernetes.io/basic-auth" }, want: edited},
		"nothing was":                 {state: func(*testing.T, *State) {}},
		"somebody's label was put on": {state: func(_ *testing.T, s *State) { s.Clone.Labels["team"] = "a" }},
		"the source has changed": {state: func(t *testing.T, s *State) {
			t.Helper()
			s.Claims[0].Source = testSource(t, map[string]string{"user": "new"})
		}},
		"the source has changed, and so has the clone": {state: func(t *testing.T, s *State) {
			t.Helper()
			edit(t, s)
			s.Claims[0].Source = testSource(t, map[string]string{"user": "new"})
		}},
		"the type of the source has changed": {state: func(t *testing.T, s *State) {
			t.Helper()
			source := testSource(t, map[string]string{"user": "blog"})
			source.Content.Type = "kubernetes.io/basic-auth"
			s.Claims[0].Source = source
		}},
		"the rule has changed": {state: func(_ *testing.T, s *State) {
			changed := *s.Claims[0].Rule
			changed.Target.Labels = map[string]string{"more": "x"}
			s.Claims[0].Rule = &changed
		}},
		"the source is gone and the clone edited": {state: func(t *testing.T, s *State) {
			t.Helper()
			edit(t, s)
			s.Claims[0].Source = nil
		}},
		"it was not right before it was edited": {
			before: func(was *object.Digested) { was.Digests = nil }, state: edit,
		},
		"it was not right before it was deleted": {
			before: func(was *object.Digested) { was.Digests = nil }, state: gone,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			state := stateOf(testRule(t, nil), testSource(t, map[string]string{"user": "blog"}), &Namespace{Name: "team-a"})
			inSync(t, &state)
			was := cloneOf(t, state.Claims[0].Rule, state.Claims[0].Source, "team-a")
			if test.before != nil {
				test.before(was)
			}
			test.state(t, &state)
			got, healed := heals(state, Plan(state), change{was, was})
			require.Equal(t, test.want, got)
			require.Equal(t, test.want != "", healed)
		})
	}
}

func TestAPlaceThatNobodyChangedIsNotHealed(t *testing.T) {
	state := stateOf(testRule(t, nil), testSource(t, nil), &Namespace{Name: "team-a"})
	clone, removed := cloneOf(t, state.Claims[0].Rule, state.Claims[0].Source, "team-a"), changes{}
	require.Zero(t, removed.settle(state.Target, change{}, Step{Action: Remove}))
	removed.note(clone)
	for sentence, since := range map[string]change{
		"a new namespace, or a start":    {},
		"a clone that Headwater removed": removed[state.Target],
	} {
		t.Run(sentence, func(t *testing.T) {
			step := Plan(state)
			require.Equal(t, Create, step.Action)
			_, healed := heals(state, step, since)
			require.False(t, healed)
		})
	}
}

func TestAChangeIsKnownUntilItsOutcomeIs(t *testing.T) {
	versions := make([]*object.Digested, 4)
	for i := range versions {
		versions[i] = &object.Digested{Kind: object.Secret, ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "s"}}
	}
	target, c := versions[0].Ref(), changes{}
	written, waits := Step{Action: Update}, Step{Action: Leave, Reason: CloneTerminating}

	c.note(versions[0])
	c.note(versions[1])
	c.note(versions[2])
	seen := c[target]
	require.Same(t, versions[0], seen.first, "it may be the one that was right")
	require.Same(t, versions[2], seen.last, "or this, when it was healed in between")
	require.Zero(t, c.settle(target, seen, waits), "it is made anew once it is gone")
	require.Equal(t, seen, c[target])

	c.note(versions[3])
	require.Equal(t, seen, c.settle(target, seen, written))
	later := change{versions[3], versions[3]}
	require.Equal(t, later, c[target], "what came while it was written is for the next look")
	require.Equal(t, later, c.settle(target, later, written))
	require.Empty(t, c)
	require.Zero(t, c.settle(target, change{}, written))
	require.Empty(t, c, "of a place that nothing happened to, nothing is kept")

	c.note(versions[1])
	late := change{versions[1], versions[1]}
	require.Zero(t, c.settle(target, change{}, Step{Action: Leave, Reason: InSync}), "the look was at what was right")
	require.Equal(t, late, c[target])
	require.Equal(t, late, c.settle(target, change{}, written), "the look saw the change before it was told of")
	require.Empty(t, c)
}
