package reload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/object"
)

const testUID = types.UID("5d1c7a1e")

type data map[string]string

// secret is a Secret of that name, governed by rule r under action Auto, with
// that data.
func secret(h *digest.Hasher, name string, mode Mode, content data, keys ...string) Consumed {
	return Consumed{
		Reference: Reference{Kind: object.Secret, Name: name, Mode: mode, Keys: keys},
		Object:    object.Ref{Kind: object.Secret, Namespace: "ns", Name: name},
		Rule:      "r", Action: Auto, Exists: true, Digests: digests(h, content),
	}
}

func (c Consumed) under(action Action) Consumed { c.Action = action; return c }

func (c Consumed) ungoverned() Consumed { c.Rule, c.Action = "", None; return c }

func (c Consumed) missing() Consumed { c.Exists, c.Absent, c.Digests = false, true, nil; return c }

// without is c while it is not there, and pods run that started without it.
func (c Consumed) without() Consumed { c = c.missing().optional(); c.Without = true; return c }

func (c Consumed) unread() Consumed { c.Exists, c.Digests = false, nil; return c }

func (c Consumed) optional() Consumed { c.Optional, c.Required = true, nil; return c }

func (c Consumed) requiring(keys ...string) Consumed { c.Required = keys; return c }

func (c Consumed) frozen() Consumed   { c.Immutable = true; return c }
func (c Consumed) released() Consumed { c.Released = true; return c }

func (c Consumed) changedAt(at time.Time) Consumed {
	c.ChangedAt, c.KeysChangedAt = at, at
	return c
}

// otherKeys is c, whose keys were last written at that time.
func (c Consumed) otherKeys(at time.Time) Consumed { c.KeysChangedAt = at; return c }

func TestDecideWorkload(t *testing.T) {
	h := testHasher(t, 1)
	v1, v2 := data{"a": "1", "b": "1"}, data{"a": "2", "b": "1"}
	tests := map[string]struct {
		// before was adopted; nil means that there is no baseline.
		before, now []Consumed
		step        Step
		reason      Reason
		changed     []string
		missing     []string
		// gone is true when the baseline is to be removed.
		gone bool
	}{
		"first sight of env is adopted": {
			now: []Consumed{secret(h, "s", Env, v1, "a")}, step: StepAdopt, reason: ReasonFirstSight,
		},
		"first sight of a mounted volume is not even written": {
			now: []Consumed{secret(h, "s", Volume, v1)}, step: StepNothing, reason: ReasonUnchanged, gone: true,
		},
		"first sight of a volume under Restart is adopted": {
			now: []Consumed{secret(h, "s", Volume, v1).under(Restart)}, step: StepAdopt, reason: ReasonFirstSight,
		},
		"first sight of an object that does not exist is not written": {
			now: []Consumed{secret(h, "s", Env, v1, "a").missing()}, step: StepNothing, reason: ReasonUnchanged, gone: true,
		},
		"first sight of an object that nobody governs is not written": {
			now: []Consumed{secret(h, "s", Env, v1, "a").ungoverned()}, step: StepNothing, reason: ReasonUnchanged, gone: true,
		},
		"the same data is nothing": {
			before: []Consumed{secret(h, "s", EnvFrom, v1)}, now: []Consumed{secret(h, "s", EnvFrom, v1)},
			step: StepNothing, reason: ReasonUnchanged,
		},
		"a change of an env key restarts": {
			before: []Consumed{secret(h, "s", Env, v1, "a")}, now: []Consumed{secret(h, "s", Env, v2, "a")},
			step: StepRestart, reason: ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"a change of a subPath mount restarts": {
			before: []Consumed{secret(h, "s", SubPath, v1)}, now: []Consumed{secret(h, "s", SubPath, v2)},
			step: StepRestart, reason: ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"a change of a volume that an init container mounts restarts": {
			before: []Consumed{secret(h, "s", InitVolume, v1), secret(h, "s", Volume, v1)},
			now:    []Consumed{secret(h, "s", InitVolume, v2), secret(h, "s", Volume, v2)},
			step:   StepRestart, reason: ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"an init container's volume that was taken for any other is adopted": {
			before: []Consumed{secret(h, "t", Env, v1, "a"), secret(h, "s", Volume, v1)},
			now:    []Consumed{secret(h, "t", Env, v1, "a"), secret(h, "s", InitVolume, v2)},
			step:   StepAdopt, reason: ReasonReferences,
		},
		"an init container's volume that was taken for any other, beside a change, is adopted with it": {
			before: []Consumed{secret(h, "t", Env, v1, "a"), secret(h, "s", Volume, v1)},
			now:    []Consumed{secret(h, "t", Env, v2, "a"), secret(h, "s", InitVolume, v2)},
			step:   StepRestart, reason: ReasonChanged, changed: []string{"Secret/ns/t"},
		},
		"under Refresh an init container's volume is left alone": {
			before: []Consumed{secret(h, "s", InitVolume, v1)}, now: []Consumed{secret(h, "s", InitVolume, v2).under(Refresh)},
			step: StepNothing, reason: ReasonUnchanged,
		},
		"a change of a key that nobody consumes is nothing": {
			before: []Consumed{secret(h, "s", Env, v1, "b")}, now: []Consumed{secret(h, "s", Env, v2, "b")},
			step: StepNothing, reason: ReasonUnchanged,
		},
		"an optional key that goes away is a change": {
			before: []Consumed{secret(h, "s", Env, v1, "a").optional()}, now: []Consumed{secret(h, "s", Env, data{"b": "1"}, "a").optional()},
			step: StepRestart, reason: ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"only what changed is named": {
			before: []Consumed{secret(h, "s", EnvFrom, v1), secret(h, "t", EnvFrom, v1)},
			now:    []Consumed{secret(h, "s", EnvFrom, v1), secret(h, "t", EnvFrom, v2)},
			step:   StepRestart, reason: ReasonChanged, changed: []string{"Secret/ns/t"},
		},
		"an object consumed in two modes is named once": {
			before: []Consumed{secret(h, "s", Env, v1, "a"), secret(h, "s", SubPath, v1, "a"), secret(h, "s", EnvFrom, v1)},
			now:    []Consumed{secret(h, "s", Env, v2, "a"), secret(h, "s", SubPath, v2, "a"), secret(h, "s", EnvFrom, v2)},
			step:   StepRestart, reason: ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"env and volume of a changed object make one restart": {
			before: []Consumed{secret(h, "s", Env, v1, "a"), secret(h, "s", Volume, v1)},
			now:    []Consumed{secret(h, "s", Env, v2, "a"), secret(h, "s", Volume, v2)},
			step:   StepRestart, reason: ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"a changed volume beside unchanged env is nothing to the workload": {
			before: []Consumed{secret(h, "s", Env, v1, "b"), secret(h, "t", Volume, v1)},
			now:    []Consumed{secret(h, "s", Env, v2, "b"), secret(h, "t", Volume, v2)},
			step:   StepNothing, reason: ReasonUnchanged,
		},
		"under Restart a changed volume restarts": {
			before: []Consumed{secret(h, "s", Volume, v1).under(Restart)}, now: []Consumed{secret(h, "s", Volume, v2).under(Restart)},
			step: StepRestart, reason: ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"under Refresh env is left alone, and what it runs stays on record": {
			before: []Consumed{secret(h, "s", Env, v1, "a")}, now: []Consumed{secret(h, "s", Env, v2, "a").under(Refresh)},
			step: StepNothing, reason: ReasonUnchanged,
		},
		"under None nothing is done, and what it runs stays on record": {
			before: []Consumed{secret(h, "s", Volume, v1).under(Restart)}, now: []Consumed{secret(h, "s", Volume, v2).under(None)},
			step: StepNothing, reason: ReasonUnchanged,
		},
		"a volume that is no longer restarted for leaves the record": {
			before: []Consumed{secret(h, "s", Volume, v1).under(Restart)}, now: []Consumed{secret(h, "s", Volume, v2)},
			step: StepAdopt, reason: ReasonReferences, gone: true,
		},
		"a reference that is added is adopted": {
			before: []Consumed{secret(h, "s", EnvFrom, v1)}, now: []Consumed{secret(h, "s", EnvFrom, v1), secret(h, "t", EnvFrom, v2)},
			step: StepAdopt, reason: ReasonReferences,
		},
		"a key that is added to the env is adopted": {
			before: []Consumed{secret(h, "s", Env, v1, "a")}, now: []Consumed{secret(h, "s", Env, v2, "a", "b")},
			step: StepAdopt, reason: ReasonReferences,
		},
		"a reference that is removed is dropped": {
			before: []Consumed{secret(h, "s", EnvFrom, v1), secret(h, "t", EnvFrom, v1)}, now: []Consumed{secret(h, "s", EnvFrom, v1)},
			step: StepAdopt, reason: ReasonReferences,
		},
		"the baseline of a workload without references is removed": {
			before: []Consumed{secret(h, "s", EnvFrom, v1)}, now: nil,
			step: StepAdopt, reason: ReasonReferences, gone: true,
		},
		"a required key that goes away holds": {
			before: []Consumed{secret(h, "s", Env, v1, "a").requiring("a")}, now: []Consumed{secret(h, "s", Env, data{"b": "1"}, "a").requiring("a")},
			step: StepHold, reason: ReasonMissing, missing: []string{"key a of Secret/ns/s"},
		},
		"a required key that was never there is not written": {
			now: []Consumed{secret(h, "s", Env, data{"b": "1"}, "a").requiring("a")}, step: StepNothing, reason: ReasonUnchanged, gone: true,
		},
		"a required key that was never there appears, and is adopted": {
			before: []Consumed{secret(h, "s", Env, data{"b": "1"}, "a").requiring("a")}, now: []Consumed{secret(h, "s", Env, v1, "a").requiring("a")},
			step: StepAdopt, reason: ReasonFirstSight,
		},
		"a volume without a key that it lists holds the restart for env": {
			before: []Consumed{secret(h, "s", Env, v1, "a"), secret(h, "t", Volume, v1, "b").requiring("b")},
			now:    []Consumed{secret(h, "s", Env, v2, "a"), secret(h, "t", Volume, data{"a": "1"}, "b").requiring("b")},
			step:   StepHold, reason: ReasonMissing, missing: []string{"key b of Secret/ns/t"},
		},
		"a volume without a key that it lists is nothing where nothing is held": {
			before: []Consumed{secret(h, "s", Env, v1, "a"), secret(h, "t", Volume, v1, "b").requiring("b")},
			now:    []Consumed{secret(h, "s", Env, v1, "a"), secret(h, "t", Volume, data{"a": "1"}, "b").requiring("b")},
			step:   StepNothing, reason: ReasonUnchanged,
		},
		"an object that is gone holds": {
			before: []Consumed{secret(h, "s", EnvFrom, v1)}, now: []Consumed{secret(h, "s", EnvFrom, v1).missing()},
			step: StepHold, reason: ReasonMissing, missing: []string{"Secret/ns/s"},
		},
		"an object that is gone, and that its clone's rule went with, holds": {
			before: []Consumed{secret(h, "s", EnvFrom, v1)}, now: []Consumed{secret(h, "s", EnvFrom, v1).missing().ungoverned()},
			step: StepHold, reason: ReasonMissing, missing: []string{"Secret/ns/s"},
		},
		"an object that was not read yet stays on record": {
			before: []Consumed{secret(h, "s", EnvFrom, v1)}, now: []Consumed{secret(h, "s", EnvFrom, v1).unread()},
			step: StepNothing, reason: ReasonUnchanged,
		},
		"an optional object that is gone stays on record": {
			before: []Consumed{secret(h, "s", EnvFrom, v1).optional()}, now: []Consumed{secret(h, "s", EnvFrom, v1).missing().optional()},
			step: StepNothing, reason: ReasonUnchanged,
		},
		"what pods started without is on record": {
			now: []Consumed{secret(h, "s", EnvFrom, v1).without()}, step: StepAdopt, reason: ReasonFirstSight,
		},
		"what pods started without appears, and restarts": {
			before: []Consumed{secret(h, "s", EnvFrom, v1).without()}, now: []Consumed{secret(h, "s", EnvFrom, v1).optional()},
			step: StepRestart, reason: ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"what pods started without appears, and is missing a key that was not there either": {
			before: []Consumed{secret(h, "s", Env, v1, "a").without()}, now: []Consumed{secret(h, "s", Env, data{"b": "1"}, "a").optional()},
			step: StepNothing, reason: ReasonUnchanged,
		},
		"what no pod started without appears, and is adopted": {
			before: []Consumed{secret(h, "s", EnvFrom, v1).missing().optional()}, now: []Consumed{secret(h, "s", EnvFrom, v1).optional()},
			step: StepAdopt, reason: ReasonFirstSight,
		},
		"pods that cannot start yet may do so with what they could do without": {
			now:  []Consumed{secret(h, "s", EnvFrom, v1).without(), secret(h, "t", EnvFrom, v1).missing()},
			step: StepNothing, reason: ReasonUnchanged, gone: true,
		},
		"a volume that pods started without is the kubelet's to fill": {
			now: []Consumed{secret(h, "s", Volume, v1).without()}, step: StepNothing, reason: ReasonUnchanged, gone: true,
		},
		"what pods started without is not written where nobody asks": {
			now: []Consumed{secret(h, "s", EnvFrom, v1).without().under(None)}, step: StepNothing, reason: ReasonUnchanged, gone: true,
		},
		"an optional object that is gone from under its pods stays on record": {
			before: []Consumed{secret(h, "s", EnvFrom, v1).optional()}, now: []Consumed{secret(h, "s", EnvFrom, v1).without()},
			step: StepNothing, reason: ReasonUnchanged,
		},
		"an object that nobody governs any more holds": {
			before: []Consumed{secret(h, "s", EnvFrom, v1)}, now: []Consumed{secret(h, "s", EnvFrom, v2).ungoverned()},
			step: StepNothing, reason: ReasonUnchanged,
		},
		"one object gone holds the restart for another": {
			before: []Consumed{secret(h, "s", EnvFrom, v1), secret(h, "t", EnvFrom, v1)},
			now:    []Consumed{secret(h, "s", EnvFrom, v1).missing(), secret(h, "t", EnvFrom, v2)},
			step:   StepHold, reason: ReasonMissing, missing: []string{"Secret/ns/s"},
		},
		"an object of nobody's gone holds the restart for another": {
			before: []Consumed{secret(h, "t", EnvFrom, v1)},
			now:    []Consumed{secret(h, "s", EnvFrom, v1).missing().ungoverned(), secret(h, "t", EnvFrom, v2)},
			step:   StepHold, reason: ReasonMissing, missing: []string{"Secret/ns/s"},
		},
		"what is new is adopted while a restart is held": {
			before: []Consumed{secret(h, "s", EnvFrom, v1), secret(h, "t", EnvFrom, v1)},
			now:    []Consumed{secret(h, "s", EnvFrom, v1).missing(), secret(h, "t", EnvFrom, v2), secret(h, "u", EnvFrom, v1)},
			step:   StepAdopt, reason: ReasonReferences,
		},
		"one optional object gone does not hide the change of another": {
			before: []Consumed{secret(h, "s", EnvFrom, v1).optional(), secret(h, "t", EnvFrom, v1)},
			now:    []Consumed{secret(h, "s", EnvFrom, v1).missing().optional(), secret(h, "t", EnvFrom, v2)},
			step:   StepRestart, reason: ReasonChanged, changed: []string{"Secret/ns/t"},
		},
		"an immutable volume is adopted": {
			now: []Consumed{secret(h, "s", Volume, v1).frozen()}, step: StepAdopt, reason: ReasonFirstSight,
		},
		"an immutable volume that was made anew with other data, and mutable, restarts": {
			before: []Consumed{secret(h, "s", Volume, v1).frozen()}, now: []Consumed{secret(h, "s", Volume, v2)},
			step: StepRestart, reason: ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"an immutable volume that was made anew with other data, and under Restart, restarts": {
			before: []Consumed{secret(h, "s", Volume, v1).frozen()}, now: []Consumed{secret(h, "s", Volume, v2).under(Restart)},
			step: StepRestart, reason: ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"an immutable volume that was made anew as it was, and mutable, stays on record": {
			before: []Consumed{secret(h, "s", Volume, v1).frozen()}, now: []Consumed{secret(h, "s", Volume, v1)},
			step: StepNothing, reason: ReasonUnchanged,
		},
		"an immutable volume that is gone stays on record": {
			before: []Consumed{secret(h, "s", Volume, v1).frozen().optional()}, now: []Consumed{secret(h, "s", Volume, v1).missing().optional()},
			step: StepNothing, reason: ReasonUnchanged,
		},
		"an immutable volume that is switched off stays on record": {
			before: []Consumed{secret(h, "s", Volume, v1).frozen()}, now: []Consumed{secret(h, "s", Volume, v2).under(None)},
			step: StepNothing, reason: ReasonUnchanged,
		},
		"an immutable object that was made anew with other data restarts env": {
			before: []Consumed{secret(h, "s", EnvFrom, v1).frozen()}, now: []Consumed{secret(h, "s", EnvFrom, v2).frozen()},
			step: StepRestart, reason: ReasonChanged, changed: []string{"Secret/ns/s"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stored := ""
			if test.before != nil {
				stored = decideWorkload(h, testUID, "", test.before).Baseline
			}
			decision := decideWorkload(h, testUID, stored, test.now)
			require.Equal(t, test.step, decision.Step)
			require.Equal(t, test.reason, decision.Reason)
			require.Equal(t, test.changed, decision.Changed)
			require.Equal(t, test.missing, decision.Missing)
			require.Equal(t, test.gone, decision.Baseline == "")

			after := decideWorkload(h, testUID, decision.Baseline, test.now)
			require.Contains(t, []Step{StepNothing, StepHold}, after.Step, "what was done is not done again")
			require.Equal(t, decision.Baseline, after.Baseline)
		})
	}
}

func TestKeyThatComesBackIsComparedWithWhatTheWorkloadRuns(t *testing.T) {
	h := testHasher(t, 1)
	with := func(content data) []Consumed { return []Consumed{secret(h, "s", Env, content, "a").requiring("a")} }
	stored := decideWorkload(h, testUID, "", with(data{"a": "1"})).Baseline
	held := decideWorkload(h, testUID, stored, with(nil))
	require.Equal(t, StepHold, held.Step)

	require.Equal(t, StepNothing, decideWorkload(h, testUID, held.Baseline, with(data{"a": "1"})).Step)
	require.Equal(t, StepRestart, decideWorkload(h, testUID, held.Baseline, with(data{"a": "2"})).Step)
}

func TestChangeThatWasHeldIsActedOnOnceWhatIsMissingIsBack(t *testing.T) {
	h := testHasher(t, 1)
	gone, changes := secret(h, "s", EnvFrom, data{"a": "1"}), secret(h, "t", EnvFrom, data{"a": "1"})
	changed := secret(h, "t", EnvFrom, data{"a": "2"})
	stored := decideWorkload(h, testUID, "", []Consumed{gone, changes}).Baseline
	held := decideWorkload(h, testUID, stored, []Consumed{gone.missing(), changed})
	require.Equal(t, StepHold, held.Step)
	require.Equal(t, stored, held.Baseline)

	require.Equal(t, StepNothing, decideWorkload(h, testUID, held.Baseline, []Consumed{gone, changes}).Step)
	restart := decideWorkload(h, testUID, held.Baseline, []Consumed{gone, changed})
	require.Equal(t, StepRestart, restart.Step)
	require.Equal(t, []string{"Secret/ns/t"}, restart.Changed)
}

func TestWhatIsNewWhileARestartWaitsIsOnRecordFromThenOn(t *testing.T) {
	h := testHasher(t, 1)
	was, is, back := data{"a": "1"}, data{"a": "2"}, data{"a": "1"}
	stored := decideWorkload(h, testUID, "", []Consumed{secret(h, "s", EnvFrom, was)}).Baseline
	waits := decideWorkload(h, testUID, stored, []Consumed{secret(h, "s", EnvFrom, is), secret(h, "t", EnvFrom, was)})
	require.Equal(t, StepRestart, waits.Step)

	again := decideWorkload(h, testUID, waits.Meanwhile, []Consumed{secret(h, "s", EnvFrom, is), secret(h, "t", EnvFrom, was)})
	require.Equal(t, []string{"Secret/ns/s"}, again.Changed, "it is still due")
	require.Equal(t, waits.Meanwhile, again.Meanwhile, "what was noted is not noted again")
	other := decideWorkload(h, testUID, waits.Meanwhile, []Consumed{secret(h, "s", EnvFrom, back), secret(h, "t", EnvFrom, is)})
	require.Equal(t, []string{"Secret/ns/t"}, other.Changed, "what is new is not first seen when the wait is over")
}

func TestObjectThatComesBackIsComparedWithWhatTheWorkloadRuns(t *testing.T) {
	h := testHasher(t, 1)
	was, is := secret(h, "s", EnvFrom, data{"a": "1"}), secret(h, "s", EnvFrom, data{"a": "2"})
	stored := decideWorkload(h, testUID, "", []Consumed{was}).Baseline
	stored = decideWorkload(h, testUID, stored, []Consumed{was.missing()}).Baseline

	require.Equal(t, StepNothing, decideWorkload(h, testUID, stored, []Consumed{was}).Step)
	require.Equal(t, StepRestart, decideWorkload(h, testUID, stored, []Consumed{is}).Step)
}

func TestWhatIsGoneWhenPodsAreRestartedRestartsThemWhenItIsBack(t *testing.T) {
	h := testHasher(t, 1)
	gone, changes := secret(h, "s", EnvFrom, data{"a": "1"}).optional(), secret(h, "t", EnvFrom, data{"a": "1"})
	changed := secret(h, "t", EnvFrom, data{"a": "2"})
	stored := decideWorkload(h, testUID, "", []Consumed{gone, changes}).Baseline
	require.Equal(t, StepNothing, decideWorkload(h, testUID, stored, []Consumed{gone.without(), changes}).Step)
	restart := decideWorkload(h, testUID, stored, []Consumed{gone.without(), changed})
	require.Equal(t, StepRestart, restart.Step)

	back := decideWorkload(h, testUID, restart.Baseline, []Consumed{gone, changed})
	require.Equal(t, StepRestart, back.Step)
	require.Equal(t, []string{"Secret/ns/s"}, back.Changed)
}

func TestPodsThatCameWhileSomethingWasGoneAreRestartedWhenItIsBack(t *testing.T) {
	h := testHasher(t, 1)
	was := secret(h, "s", EnvFrom, data{"a": "1"}).optional()
	stored := decideWorkload(h, testUID, "", []Consumed{was}).Baseline
	for sentence, gone := range map[string]Consumed{"governed": was.without(), "while no rule is about it": was.without().ungoverned()} {
		t.Run(sentence, func(t *testing.T) {
			gone.Lacked = true
			noted := decideWorkload(h, testUID, stored, []Consumed{gone})
			require.Equal(t, StepAdopt, noted.Step)
			require.Equal(t, StepNothing, decideWorkload(h, testUID, noted.Baseline, []Consumed{gone}).Step)
			require.Equal(t, StepRestart, decideWorkload(h, testUID, noted.Baseline, []Consumed{was}).Step)
		})
	}
}

// The pods of that rollout may be older than what is gone is gone.
func TestWhereARolloutBroughtTheChangeWhatIsGoneStaysOnRecord(t *testing.T) {
	h := testHasher(t, 1)
	gone, changes := secret(h, "s", EnvFrom, data{"a": "1"}).optional(), secret(h, "t", EnvFrom, data{"a": "1"})
	changed := secret(h, "t", EnvFrom, data{"a": "2"})
	stored := decideWorkload(h, testUID, "", []Consumed{gone, changes}).Baseline
	brought := decideWorkload(h, testUID, stored, []Consumed{gone.without(), changed}).delivered()
	require.Equal(t, StepNothing, decideWorkload(h, testUID, brought.Baseline, []Consumed{gone, changed}).Step)
}

func TestPodsThatMountedAnImmutableObjectAreRestartedForTheNextDifference(t *testing.T) {
	h := testHasher(t, 1)
	volume := func(value string) Consumed { return secret(h, "s", Volume, data{"a": value}) }
	look := func(stored string, now Consumed) Decision { return decideWorkload(h, testUID, stored, []Consumed{now}) }
	stored := look("", volume("1").frozen()).Baseline
	gone := look(stored, volume("1").missing())
	require.Equal(t, StepHold, gone.Step)
	require.Equal(t, StepNothing, look(gone.Baseline, volume("1")).Step, "made anew as it was")
	restart := look(gone.Baseline, volume("2"))
	require.Equal(t, StepRestart, restart.Step)
	again := look(restart.Baseline, volume("3"))
	require.Equal(t, StepRestart, again.Step, "the pods that were started then may have found it as it was before")

	thawed := look(again.Baseline, volume("3").released())
	require.Equal(t, StepAdopt, thawed.Step)
	require.Equal(t, StepNothing, look(thawed.Baseline, volume("4")).Step, "pods that come after that are refreshed")
}

func TestWhatNoPodReadsIsImmutableNoMore(t *testing.T) {
	h := testHasher(t, 1)
	env := func(value string) Consumed { return secret(h, "s", EnvFrom, data{"a": value}) }
	look := func(stored string, now Consumed) Decision { return decideWorkload(h, testUID, stored, []Consumed{now}) }
	stored := look("", env("1").frozen()).Baseline
	require.Equal(t, []string{"Secret/ns/s"}, look(stored, env("1")).Frozen)

	thawed := look(stored, env("1").released())
	require.Equal(t, StepAdopt, thawed.Step)
	require.Empty(t, look(thawed.Baseline, env("1")).Frozen)
	require.Equal(t, StepRestart, look(thawed.Baseline, env("2")).Step)

	onItsWay := look(stored, env("2").released())
	require.Equal(t, StepRestart, onItsWay.Step, "a pod that no cache has yet may have read what was")
	require.Empty(t, onItsWay.mayReadOld())
}

func TestARestartNamesWhatKubeletsMayHandOutAsItWas(t *testing.T) {
	h := testHasher(t, 1)
	for name, test := range map[string]struct {
		before, now, next Consumed
		frozen, then      []string // at the change to now, and to next
	}{
		"env, made anew as mutable": {
			secret(h, "s", EnvFrom, data{"a": "1"}).frozen(), secret(h, "s", EnvFrom, data{"a": "2"}), secret(h, "s", EnvFrom, data{"a": "3"}),
			[]string{"Secret/ns/s"},
			[]string{"Secret/ns/s"},
		},
		"a volume, made anew as immutable": {
			secret(h, "s", Volume, data{"a": "1"}).frozen(), secret(h, "s", Volume, data{"a": "2"}).frozen(), secret(h, "s", Volume, data{"a": "3"}).frozen(),
			[]string{"Secret/ns/s"},
			[]string{"Secret/ns/s"},
		},
		"a volume under Restart, made anew as immutable": {
			secret(h, "s", Volume, data{"a": "1"}).frozen().under(Restart), secret(h, "s", Volume, data{"a": "2"}).frozen().under(Restart), secret(h, "s", Volume, data{"a": "3"}).under(Restart),
			[]string{"Secret/ns/s"},
			[]string{"Secret/ns/s"},
		},
		"env of what is immutable from now on": {
			secret(h, "s", EnvFrom, data{"a": "1"}), secret(h, "s", EnvFrom, data{"a": "2"}).frozen(), secret(h, "s", EnvFrom, data{"a": "3"}),
			nil,
			[]string{"Secret/ns/s"},
		},
		"env of what is mutable": {
			secret(h, "s", EnvFrom, data{"a": "1"}), secret(h, "s", EnvFrom, data{"a": "2"}), secret(h, "s", EnvFrom, data{"a": "3"}),
			nil, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			beside := secret(h, "beside", EnvFrom, data{"a": "1"}).frozen()
			stored := decideWorkload(h, testUID, "", []Consumed{beside, test.before}).Baseline
			first := decideWorkload(h, testUID, stored, []Consumed{beside, test.now})
			require.Equal(t, StepRestart, first.Step)
			require.ElementsMatch(t, test.frozen, first.mayReadOld())
			require.ElementsMatch(t, test.frozen, first.delivered().mayReadOld())
			require.Equal(t, StepNothing, decideWorkload(h, testUID, first.Baseline, []Consumed{beside, test.now}).Step)
			second := decideWorkload(h, testUID, first.Baseline, []Consumed{beside, test.next})
			require.Equal(t, StepRestart, second.Step)
			require.ElementsMatch(t, test.then, second.mayReadOld())
		})
	}
}

// Before an immutable object had an id of its own, it was recorded as others are.
func TestAnImmutableVolumeOnRecordAsAnyOtherIsCompared(t *testing.T) {
	h := testHasher(t, 1)
	was, is := secret(h, "s", Volume, data{"a": "1"}), secret(h, "s", Volume, data{"a": "2"})
	stored := decideWorkload(h, testUID, "", []Consumed{was.under(Restart)}).Baseline
	require.Equal(t, StepRestart, decideWorkload(h, testUID, stored, []Consumed{is.frozen()}).Step)
	require.Equal(t, Behind, standing(h, testUID, stored, asRecorded(h, testUID, stored, is.frozen())))
	same := decideWorkload(h, testUID, stored, []Consumed{was.frozen()})
	require.Equal(t, StepAdopt, same.Step)
	require.Equal(t, StepRestart, decideWorkload(h, testUID, same.Baseline, []Consumed{is}).Step)
	require.Equal(t, Behind, standing(h, testUID, same.Baseline, asRecorded(h, testUID, same.Baseline, is)))
}

func TestBaselineThatCannotBeComparedIsAdoptedAnew(t *testing.T) {
	h, lost := testHasher(t, 1), testHasher(t, 2)
	now := []Consumed{secret(h, "s", EnvFrom, data{"a": "2"})}
	ofOther := decideWorkload(lost, testUID, "", []Consumed{secret(lost, "s", EnvFrom, data{"a": "1"})}).Baseline
	ofCopy := decideWorkload(h, "another-uid", "", []Consumed{secret(h, "s", EnvFrom, data{"a": "1"})}).Baseline
	tests := map[string]struct {
		stored string
		reason Reason
		loud   bool
	}{
		"garbage":                            {"garbage", ReasonUnreadable, true},
		"a version of the future":            {"v3:00000000:", ReasonUnreadable, true},
		"a version of the past":              {"v1:00000000:", ReasonUnreadable, true},
		"the key is lost":                    {ofOther, ReasonOtherKey, true},
		"the workload was copied from other": {ofCopy, ReasonReferences, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			decision := decideWorkload(h, testUID, test.stored, now)
			require.Equal(t, StepAdopt, decision.Step)
			require.Equal(t, test.reason, decision.Reason)
			require.Equal(t, test.loud, decision.lostBaseline())
			require.Equal(t, decideWorkload(h, testUID, "", now).Baseline, decision.Baseline)
		})
	}
	require.Equal(t, StepNothing, decideWorkload(h, testUID, "garbage", nil).Step, "nothing governed: not ours to touch")
}

func TestTheRuleOfTheFirstChangeIsNamed(t *testing.T) {
	h := testHasher(t, 1)
	one, two := secret(h, "s", EnvFrom, data{"a": "1"}), secret(h, "t", EnvFrom, data{"a": "1"})
	two.Rule = "second"
	stored := decideWorkload(h, testUID, "", []Consumed{one, two}).Baseline
	two.Digests = digests(h, data{"a": "2"})
	require.Equal(t, "second", decideWorkload(h, testUID, stored, []Consumed{one, two}).Rule)
}
