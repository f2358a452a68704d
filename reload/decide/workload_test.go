package decide_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
)

const testUID = types.UID("5d1c7a1e")

// secret is a Secret of that name, governed by rule r under action Auto, with
// that data.
func secret(h *digest.Hasher, name string, mode refs.Mode, content reloadtest.Data, keys ...string) decide.Input {
	return decide.Input{
		Reference: refs.Reference{Kind: object.Secret, Name: name, Mode: mode, Keys: keys},
		Object:    object.Ref{Kind: object.Secret, Namespace: "ns", Name: name},
		Rule:      "r", Action: spec.Auto, Exists: true, Digests: reloadtest.Digests(h, content),
	}
}

func under(c decide.Input, action spec.Action) decide.Input { c.Action = action; return c }

func ungoverned(c decide.Input) decide.Input { c.Rule, c.Action = "", spec.None; return c }

func missing(c decide.Input) decide.Input { c.Exists, c.Absent, c.Digests = false, true, nil; return c }

// without is c while it is not there, and pods run that started without it.
func without(c decide.Input) decide.Input {
	c = optional(missing(c))
	c.StartedWithout = true
	return c
}

func unread(c decide.Input) decide.Input { c.Exists, c.Digests = false, nil; return c }

func optional(c decide.Input) decide.Input { c.Optional, c.Required = true, nil; return c }

func requiring(c decide.Input, keys ...string) decide.Input { c.Required = keys; return c }

func frozen(c decide.Input) decide.Input { c.Immutable = true; return c }

func released(c decide.Input) decide.Input { c.Released = true; return c }

func changedAt(c decide.Input, at time.Time) decide.Input {
	c.ChangedAt, c.KeysChangedAt = at, at
	return c
}

// otherKeys is c, whose keys were last written at that time.
func otherKeys(c decide.Input, at time.Time) decide.Input { c.KeysChangedAt = at; return c }

// delivered is what becomes of d once another rollout has delivered the change.
func delivered(d decide.Decision) decide.Decision {
	d, _, _ = decide.Start(decide.Due{Decision: d, Coverage: decide.Delivered})
	return d
}

func TestDecideWorkload(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	v1, v2 := reloadtest.Data{"a": "1", "b": "1"}, reloadtest.Data{"a": "2", "b": "1"}
	tests := map[string]struct {
		// before was adopted; nil means that there is no baseline.
		before, now []decide.Input
		step        spec.Step
		reason      spec.Reason
		changed     []string
		missing     []string
		// gone is true when the baseline is to be removed.
		gone bool
	}{
		"first sight of env is adopted": {
			now: []decide.Input{secret(h, "s", refs.Env, v1, "a")}, step: spec.StepAdopt, reason: spec.ReasonFirstSight,
		},
		"first sight of a mounted volume is not even written": {
			now: []decide.Input{secret(h, "s", refs.Volume, v1)}, step: spec.StepNothing, reason: spec.ReasonUnchanged, gone: true,
		},
		"first sight of a volume under Restart is adopted": {
			now: []decide.Input{under(secret(h, "s", refs.Volume, v1), spec.Restart)}, step: spec.StepAdopt, reason: spec.ReasonFirstSight,
		},
		"first sight of an object that does not exist is not written": {
			now: []decide.Input{missing(secret(h, "s", refs.Env, v1, "a"))}, step: spec.StepNothing, reason: spec.ReasonUnchanged, gone: true,
		},
		"first sight of an object that nobody governs is not written": {
			now: []decide.Input{ungoverned(secret(h, "s", refs.Env, v1, "a"))}, step: spec.StepNothing, reason: spec.ReasonUnchanged, gone: true,
		},
		"the same data is nothing": {
			before: []decide.Input{secret(h, "s", refs.EnvFrom, v1)}, now: []decide.Input{secret(h, "s", refs.EnvFrom, v1)},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"a change of an env key restarts": {
			before: []decide.Input{secret(h, "s", refs.Env, v1, "a")}, now: []decide.Input{secret(h, "s", refs.Env, v2, "a")},
			step: spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"a change of a subPath mount restarts": {
			before: []decide.Input{secret(h, "s", refs.SubPath, v1)}, now: []decide.Input{secret(h, "s", refs.SubPath, v2)},
			step: spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"a change of a volume that an init container mounts restarts": {
			before: []decide.Input{secret(h, "s", refs.InitVolume, v1), secret(h, "s", refs.Volume, v1)},
			now:    []decide.Input{secret(h, "s", refs.InitVolume, v2), secret(h, "s", refs.Volume, v2)},
			step:   spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"an init container's volume that was taken for any other is adopted": {
			before: []decide.Input{secret(h, "t", refs.Env, v1, "a"), secret(h, "s", refs.Volume, v1)},
			now:    []decide.Input{secret(h, "t", refs.Env, v1, "a"), secret(h, "s", refs.InitVolume, v2)},
			step:   spec.StepAdopt, reason: spec.ReasonReferences,
		},
		"an init container's volume that was taken for any other, beside a change, is adopted with it": {
			before: []decide.Input{secret(h, "t", refs.Env, v1, "a"), secret(h, "s", refs.Volume, v1)},
			now:    []decide.Input{secret(h, "t", refs.Env, v2, "a"), secret(h, "s", refs.InitVolume, v2)},
			step:   spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/t"},
		},
		"under Refresh an init container's volume is left alone": {
			before: []decide.Input{secret(h, "s", refs.InitVolume, v1)}, now: []decide.Input{under(secret(h, "s", refs.InitVolume, v2), spec.Refresh)},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"a change of a key that nobody consumes is nothing": {
			before: []decide.Input{secret(h, "s", refs.Env, v1, "b")}, now: []decide.Input{secret(h, "s", refs.Env, v2, "b")},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"an optional key that goes away is a change": {
			before: []decide.Input{optional(secret(h, "s", refs.Env, v1, "a"))}, now: []decide.Input{optional(secret(h, "s", refs.Env, reloadtest.Data{"b": "1"}, "a"))},
			step: spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"only what changed is named": {
			before: []decide.Input{secret(h, "s", refs.EnvFrom, v1), secret(h, "t", refs.EnvFrom, v1)},
			now:    []decide.Input{secret(h, "s", refs.EnvFrom, v1), secret(h, "t", refs.EnvFrom, v2)},
			step:   spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/t"},
		},
		"an object consumed in two modes is named once": {
			before: []decide.Input{secret(h, "s", refs.Env, v1, "a"), secret(h, "s", refs.SubPath, v1, "a"), secret(h, "s", refs.EnvFrom, v1)},
			now:    []decide.Input{secret(h, "s", refs.Env, v2, "a"), secret(h, "s", refs.SubPath, v2, "a"), secret(h, "s", refs.EnvFrom, v2)},
			step:   spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"env and volume of a changed object make one restart": {
			before: []decide.Input{secret(h, "s", refs.Env, v1, "a"), secret(h, "s", refs.Volume, v1)},
			now:    []decide.Input{secret(h, "s", refs.Env, v2, "a"), secret(h, "s", refs.Volume, v2)},
			step:   spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"a changed volume beside unchanged env is nothing to the workload": {
			before: []decide.Input{secret(h, "s", refs.Env, v1, "b"), secret(h, "t", refs.Volume, v1)},
			now:    []decide.Input{secret(h, "s", refs.Env, v2, "b"), secret(h, "t", refs.Volume, v2)},
			step:   spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"under Restart a changed volume restarts": {
			before: []decide.Input{under(secret(h, "s", refs.Volume, v1), spec.Restart)}, now: []decide.Input{under(secret(h, "s", refs.Volume, v2), spec.Restart)},
			step: spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"under Refresh env is left alone, and what it runs stays on record": {
			before: []decide.Input{secret(h, "s", refs.Env, v1, "a")}, now: []decide.Input{under(secret(h, "s", refs.Env, v2, "a"), spec.Refresh)},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"under None nothing is done, and what it runs stays on record": {
			before: []decide.Input{under(secret(h, "s", refs.Volume, v1), spec.Restart)}, now: []decide.Input{under(secret(h, "s", refs.Volume, v2), spec.None)},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"a volume that is no longer restarted for leaves the record": {
			before: []decide.Input{under(secret(h, "s", refs.Volume, v1), spec.Restart)}, now: []decide.Input{secret(h, "s", refs.Volume, v2)},
			step: spec.StepAdopt, reason: spec.ReasonReferences, gone: true,
		},
		"a reference that is added is adopted": {
			before: []decide.Input{secret(h, "s", refs.EnvFrom, v1)}, now: []decide.Input{secret(h, "s", refs.EnvFrom, v1), secret(h, "t", refs.EnvFrom, v2)},
			step: spec.StepAdopt, reason: spec.ReasonReferences,
		},
		"a key that is added to the env is adopted": {
			before: []decide.Input{secret(h, "s", refs.Env, v1, "a")}, now: []decide.Input{secret(h, "s", refs.Env, v2, "a", "b")},
			step: spec.StepAdopt, reason: spec.ReasonReferences,
		},
		"a reference that is removed is dropped": {
			before: []decide.Input{secret(h, "s", refs.EnvFrom, v1), secret(h, "t", refs.EnvFrom, v1)}, now: []decide.Input{secret(h, "s", refs.EnvFrom, v1)},
			step: spec.StepAdopt, reason: spec.ReasonReferences,
		},
		"the baseline of a workload without references is removed": {
			before: []decide.Input{secret(h, "s", refs.EnvFrom, v1)}, now: nil,
			step: spec.StepAdopt, reason: spec.ReasonReferences, gone: true,
		},
		"a required key that goes away holds": {
			before: []decide.Input{requiring(secret(h, "s", refs.Env, v1, "a"), "a")}, now: []decide.Input{requiring(secret(h, "s", refs.Env, reloadtest.Data{"b": "1"}, "a"), "a")},
			step: spec.StepHold, reason: spec.ReasonMissing, missing: []string{"key a of Secret/ns/s"},
		},
		"a required key that was never there is not written": {
			now: []decide.Input{requiring(secret(h, "s", refs.Env, reloadtest.Data{"b": "1"}, "a"), "a")}, step: spec.StepNothing, reason: spec.ReasonUnchanged, gone: true,
		},
		"a required key that was never there appears, and is adopted": {
			before: []decide.Input{requiring(secret(h, "s", refs.Env, reloadtest.Data{"b": "1"}, "a"), "a")}, now: []decide.Input{requiring(secret(h, "s", refs.Env, v1, "a"), "a")},
			step: spec.StepAdopt, reason: spec.ReasonFirstSight,
		},
		"a volume without a key that it lists holds the restart for env": {
			before: []decide.Input{secret(h, "s", refs.Env, v1, "a"), requiring(secret(h, "t", refs.Volume, v1, "b"), "b")},
			now:    []decide.Input{secret(h, "s", refs.Env, v2, "a"), requiring(secret(h, "t", refs.Volume, reloadtest.Data{"a": "1"}, "b"), "b")},
			step:   spec.StepHold, reason: spec.ReasonMissing, missing: []string{"key b of Secret/ns/t"},
		},
		"a volume without a key that it lists is nothing where nothing is held": {
			before: []decide.Input{secret(h, "s", refs.Env, v1, "a"), requiring(secret(h, "t", refs.Volume, v1, "b"), "b")},
			now:    []decide.Input{secret(h, "s", refs.Env, v1, "a"), requiring(secret(h, "t", refs.Volume, reloadtest.Data{"a": "1"}, "b"), "b")},
			step:   spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"an object that is gone holds": {
			before: []decide.Input{secret(h, "s", refs.EnvFrom, v1)}, now: []decide.Input{missing(secret(h, "s", refs.EnvFrom, v1))},
			step: spec.StepHold, reason: spec.ReasonMissing, missing: []string{"Secret/ns/s"},
		},
		"an object that is gone, and that its clone's rule went with, holds": {
			before: []decide.Input{secret(h, "s", refs.EnvFrom, v1)}, now: []decide.Input{ungoverned(missing(secret(h, "s", refs.EnvFrom, v1)))},
			step: spec.StepHold, reason: spec.ReasonMissing, missing: []string{"Secret/ns/s"},
		},
		"an object that was not read yet stays on record": {
			before: []decide.Input{secret(h, "s", refs.EnvFrom, v1)}, now: []decide.Input{unread(secret(h, "s", refs.EnvFrom, v1))},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"an optional object that is gone stays on record": {
			before: []decide.Input{optional(secret(h, "s", refs.EnvFrom, v1))}, now: []decide.Input{optional(missing(secret(h, "s", refs.EnvFrom, v1)))},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"what pods started without is on record": {
			now: []decide.Input{without(secret(h, "s", refs.EnvFrom, v1))}, step: spec.StepAdopt, reason: spec.ReasonFirstSight,
		},
		"what pods started without appears, and restarts": {
			before: []decide.Input{without(secret(h, "s", refs.EnvFrom, v1))}, now: []decide.Input{optional(secret(h, "s", refs.EnvFrom, v1))},
			step: spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"what pods started without appears, and is missing a key that was not there either": {
			before: []decide.Input{without(secret(h, "s", refs.Env, v1, "a"))}, now: []decide.Input{optional(secret(h, "s", refs.Env, reloadtest.Data{"b": "1"}, "a"))},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"what no pod started without appears, and is adopted": {
			before: []decide.Input{optional(missing(secret(h, "s", refs.EnvFrom, v1)))}, now: []decide.Input{optional(secret(h, "s", refs.EnvFrom, v1))},
			step: spec.StepAdopt, reason: spec.ReasonFirstSight,
		},
		"pods that cannot start yet may do so with what they could do without": {
			now:  []decide.Input{without(secret(h, "s", refs.EnvFrom, v1)), missing(secret(h, "t", refs.EnvFrom, v1))},
			step: spec.StepNothing, reason: spec.ReasonUnchanged, gone: true,
		},
		"a volume that pods started without is the kubelet's to fill": {
			now: []decide.Input{without(secret(h, "s", refs.Volume, v1))}, step: spec.StepNothing, reason: spec.ReasonUnchanged, gone: true,
		},
		"what pods started without is not written where nobody asks": {
			now: []decide.Input{under(without(secret(h, "s", refs.EnvFrom, v1)), spec.None)}, step: spec.StepNothing, reason: spec.ReasonUnchanged, gone: true,
		},
		"an optional object that is gone from under its pods stays on record": {
			before: []decide.Input{optional(secret(h, "s", refs.EnvFrom, v1))}, now: []decide.Input{without(secret(h, "s", refs.EnvFrom, v1))},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"an object that nobody governs any more holds": {
			before: []decide.Input{secret(h, "s", refs.EnvFrom, v1)}, now: []decide.Input{ungoverned(secret(h, "s", refs.EnvFrom, v2))},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"one object gone holds the restart for another": {
			before: []decide.Input{secret(h, "s", refs.EnvFrom, v1), secret(h, "t", refs.EnvFrom, v1)},
			now:    []decide.Input{missing(secret(h, "s", refs.EnvFrom, v1)), secret(h, "t", refs.EnvFrom, v2)},
			step:   spec.StepHold, reason: spec.ReasonMissing, missing: []string{"Secret/ns/s"},
		},
		"an object of nobody's gone holds the restart for another": {
			before: []decide.Input{secret(h, "t", refs.EnvFrom, v1)},
			now:    []decide.Input{ungoverned(missing(secret(h, "s", refs.EnvFrom, v1))), secret(h, "t", refs.EnvFrom, v2)},
			step:   spec.StepHold, reason: spec.ReasonMissing, missing: []string{"Secret/ns/s"},
		},
		"what is new is adopted while a restart is held": {
			before: []decide.Input{secret(h, "s", refs.EnvFrom, v1), secret(h, "t", refs.EnvFrom, v1)},
			now:    []decide.Input{missing(secret(h, "s", refs.EnvFrom, v1)), secret(h, "t", refs.EnvFrom, v2), secret(h, "u", refs.EnvFrom, v1)},
			step:   spec.StepAdopt, reason: spec.ReasonReferences,
		},
		"one optional object gone does not hide the change of another": {
			before: []decide.Input{optional(secret(h, "s", refs.EnvFrom, v1)), secret(h, "t", refs.EnvFrom, v1)},
			now:    []decide.Input{optional(missing(secret(h, "s", refs.EnvFrom, v1))), secret(h, "t", refs.EnvFrom, v2)},
			step:   spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/t"},
		},
		"an immutable volume is adopted": {
			now: []decide.Input{frozen(secret(h, "s", refs.Volume, v1))}, step: spec.StepAdopt, reason: spec.ReasonFirstSight,
		},
		"an immutable volume restarts if it is recreated as mutable with other data": {
			before: []decide.Input{frozen(secret(h, "s", refs.Volume, v1))}, now: []decide.Input{secret(h, "s", refs.Volume, v2)},
			step: spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"an immutable volume under Restart restarts if it is recreated with other data": {
			before: []decide.Input{frozen(secret(h, "s", refs.Volume, v1))}, now: []decide.Input{under(secret(h, "s", refs.Volume, v2), spec.Restart)},
			step: spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"an immutable volume stays recorded if it is recreated as mutable with the same data": {
			before: []decide.Input{frozen(secret(h, "s", refs.Volume, v1))}, now: []decide.Input{secret(h, "s", refs.Volume, v1)},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"an immutable volume that is deleted stays recorded": {
			before: []decide.Input{optional(frozen(secret(h, "s", refs.Volume, v1)))}, now: []decide.Input{optional(missing(secret(h, "s", refs.Volume, v1)))},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"an immutable volume that is switched off stays recorded": {
			before: []decide.Input{frozen(secret(h, "s", refs.Volume, v1))}, now: []decide.Input{under(secret(h, "s", refs.Volume, v2), spec.None)},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"an immutable object restarts env if it is recreated with other data": {
			before: []decide.Input{frozen(secret(h, "s", refs.EnvFrom, v1))}, now: []decide.Input{frozen(secret(h, "s", refs.EnvFrom, v2))},
			step: spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/s"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stored := ""
			if test.before != nil {
				stored = decide.Workload(h, testUID, "", test.before).Baseline
			}
			decision := decide.Workload(h, testUID, stored, test.now)
			require.Equal(t, test.step, decision.Step)
			require.Equal(t, test.reason, decision.Reason)
			require.Equal(t, test.changed, decision.Changed)
			require.Equal(t, test.missing, decision.Missing)
			require.Equal(t, test.gone, decision.Baseline == "")

			after := decide.Workload(h, testUID, decision.Baseline, test.now)
			require.Contains(t, []spec.Step{spec.StepNothing, spec.StepHold}, after.Step, "what was done is not done again")
			require.Equal(t, decision.Baseline, after.Baseline)
		})
	}
}

func TestKeyThatComesBackIsComparedWithWhatTheWorkloadRuns(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	with := func(content reloadtest.Data) []decide.Input {
		return []decide.Input{requiring(secret(h, "s", refs.Env, content, "a"), "a")}
	}
	stored := decide.Workload(h, testUID, "", with(reloadtest.Data{"a": "1"})).Baseline
	held := decide.Workload(h, testUID, stored, with(nil))
	require.Equal(t, spec.StepHold, held.Step)

	require.Equal(t, spec.StepNothing, decide.Workload(h, testUID, held.Baseline, with(reloadtest.Data{"a": "1"})).Step)
	require.Equal(t, spec.StepRestart, decide.Workload(h, testUID, held.Baseline, with(reloadtest.Data{"a": "2"})).Step)
}

func TestChangeThatWasHeldIsActedOnOnceWhatIsMissingIsBack(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	gone, changes := secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"}), secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "1"})
	changed := secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "2"})
	stored := decide.Workload(h, testUID, "", []decide.Input{gone, changes}).Baseline
	held := decide.Workload(h, testUID, stored, []decide.Input{missing(gone), changed})
	require.Equal(t, spec.StepHold, held.Step)
	require.Equal(t, stored, held.Baseline)

	require.Equal(t, spec.StepNothing, decide.Workload(h, testUID, held.Baseline, []decide.Input{gone, changes}).Step)
	restart := decide.Workload(h, testUID, held.Baseline, []decide.Input{gone, changed})
	require.Equal(t, spec.StepRestart, restart.Step)
	require.Equal(t, []string{"Secret/ns/t"}, restart.Changed)
}

func TestWhatIsNewWhileARestartWaitsIsOnRecordFromThenOn(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	was, is, back := reloadtest.Data{"a": "1"}, reloadtest.Data{"a": "2"}, reloadtest.Data{"a": "1"}
	stored := decide.Workload(h, testUID, "", []decide.Input{secret(h, "s", refs.EnvFrom, was)}).Baseline
	waits := decide.Workload(h, testUID, stored, []decide.Input{secret(h, "s", refs.EnvFrom, is), secret(h, "t", refs.EnvFrom, was)})
	require.Equal(t, spec.StepRestart, waits.Step)

	again := decide.Workload(h, testUID, waits.BaselineWhileWaiting, []decide.Input{secret(h, "s", refs.EnvFrom, is), secret(h, "t", refs.EnvFrom, was)})
	require.Equal(t, []string{"Secret/ns/s"}, again.Changed, "it is still due")
	require.Equal(t, waits.BaselineWhileWaiting, again.BaselineWhileWaiting, "what was noted is not noted again")
	other := decide.Workload(h, testUID, waits.BaselineWhileWaiting, []decide.Input{secret(h, "s", refs.EnvFrom, back), secret(h, "t", refs.EnvFrom, is)})
	require.Equal(t, []string{"Secret/ns/t"}, other.Changed, "what is new is not first seen when the wait is over")
}

func TestObjectThatComesBackIsComparedWithWhatTheWorkloadRuns(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	was, is := secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"}), secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "2"})
	stored := decide.Workload(h, testUID, "", []decide.Input{was}).Baseline
	stored = decide.Workload(h, testUID, stored, []decide.Input{missing(was)}).Baseline

	require.Equal(t, spec.StepNothing, decide.Workload(h, testUID, stored, []decide.Input{was}).Step)
	require.Equal(t, spec.StepRestart, decide.Workload(h, testUID, stored, []decide.Input{is}).Step)
}

func TestWhatIsGoneWhenPodsAreRestartedRestartsThemWhenItIsBack(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	gone, changes := optional(secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"})), secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "1"})
	changed := secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "2"})
	stored := decide.Workload(h, testUID, "", []decide.Input{gone, changes}).Baseline
	require.Equal(t, spec.StepNothing, decide.Workload(h, testUID, stored, []decide.Input{without(gone), changes}).Step)
	restart := decide.Workload(h, testUID, stored, []decide.Input{without(gone), changed})
	require.Equal(t, spec.StepRestart, restart.Step)

	back := decide.Workload(h, testUID, restart.Baseline, []decide.Input{gone, changed})
	require.Equal(t, spec.StepRestart, back.Step)
	require.Equal(t, []string{"Secret/ns/s"}, back.Changed)
}

func TestPodsThatCameWhileSomethingWasGoneAreRestartedWhenItIsBack(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	was := optional(secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"}))
	stored := decide.Workload(h, testUID, "", []decide.Input{was}).Baseline
	for sentence, gone := range map[string]decide.Input{"governed": without(was), "while no rule is about it": ungoverned(without(was))} {
		t.Run(sentence, func(t *testing.T) {
			gone.StartedAfterDelete = true
			noted := decide.Workload(h, testUID, stored, []decide.Input{gone})
			require.Equal(t, spec.StepAdopt, noted.Step)
			require.Equal(t, spec.StepNothing, decide.Workload(h, testUID, noted.Baseline, []decide.Input{gone}).Step)
			require.Equal(t, spec.StepRestart, decide.Workload(h, testUID, noted.Baseline, []decide.Input{was}).Step)
		})
	}
}

// The pods of that rollout may be older than what is gone is gone.
func TestWhereARolloutBroughtTheChangeWhatIsGoneStaysOnRecord(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	gone, changes := optional(secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"})), secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "1"})
	changed := secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "2"})
	stored := decide.Workload(h, testUID, "", []decide.Input{gone, changes}).Baseline
	brought := delivered(decide.Workload(h, testUID, stored, []decide.Input{without(gone), changed}))
	require.Equal(t, spec.StepNothing, decide.Workload(h, testUID, brought.Baseline, []decide.Input{gone, changed}).Step)
}

func TestPodsThatMountedAnImmutableObjectAreRestartedForTheNextDifference(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	volume := func(value string) decide.Input { return secret(h, "s", refs.Volume, reloadtest.Data{"a": value}) }
	look := func(stored string, now decide.Input) decide.Decision {
		return decide.Workload(h, testUID, stored, []decide.Input{now})
	}
	stored := look("", frozen(volume("1"))).Baseline
	gone := look(stored, missing(volume("1")))
	require.Equal(t, spec.StepHold, gone.Step)
	require.Equal(t, spec.StepNothing, look(gone.Baseline, volume("1")).Step, "recreated with the same data")
	restart := look(gone.Baseline, volume("2"))
	require.Equal(t, spec.StepRestart, restart.Step)
	again := look(restart.Baseline, volume("3"))
	require.Equal(t, spec.StepRestart, again.Step, "the pods that were started then may have found it as it was before")

	after := look(again.Baseline, released(volume("3")))
	require.Equal(t, spec.StepAdopt, after.Step)
	require.Equal(t, spec.StepNothing, look(after.Baseline, volume("4")).Step, "pods that come after that are refreshed")
}

func TestWhatNoPodReadsIsImmutableNoMore(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	env := func(value string) decide.Input { return secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": value}) }
	look := func(stored string, now decide.Input) decide.Decision {
		return decide.Workload(h, testUID, stored, []decide.Input{now})
	}
	stored := look("", frozen(env("1"))).Baseline
	require.Equal(t, []string{"Secret/ns/s"}, look(stored, env("1")).Pinned)

	after := look(stored, released(env("1")))
	require.Equal(t, spec.StepAdopt, after.Step)
	require.Empty(t, look(after.Baseline, env("1")).Pinned)
	require.Equal(t, spec.StepRestart, look(after.Baseline, env("2")).Step)

	onItsWay := look(stored, released(env("2")))
	require.Equal(t, spec.StepRestart, onItsWay.Step, "a pod that no cache has yet may have read what was")
	require.Empty(t, onItsWay.MayReadOld())
}

func TestARestartNamesWhatKubeletsMayHandOutAsItWas(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	for name, test := range map[string]struct {
		before, now, next decide.Input
		frozen, then      []string // at the change to now, and to next
	}{
		"env, recreated as mutable": {
			frozen(secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"})), secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "2"}), secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "3"}),
			[]string{"Secret/ns/s"},
			[]string{"Secret/ns/s"},
		},
		"a volume, recreated as immutable": {
			frozen(secret(h, "s", refs.Volume, reloadtest.Data{"a": "1"})), frozen(secret(h, "s", refs.Volume, reloadtest.Data{"a": "2"})), frozen(secret(h, "s", refs.Volume, reloadtest.Data{"a": "3"})),
			[]string{"Secret/ns/s"},
			[]string{"Secret/ns/s"},
		},
		"a volume under Restart, recreated as immutable": {
			under(frozen(secret(h, "s", refs.Volume, reloadtest.Data{"a": "1"})), spec.Restart), under(frozen(secret(h, "s", refs.Volume, reloadtest.Data{"a": "2"})), spec.Restart), under(secret(h, "s", refs.Volume, reloadtest.Data{"a": "3"}), spec.Restart),
			[]string{"Secret/ns/s"},
			[]string{"Secret/ns/s"},
		},
		"env of what is immutable from now on": {
			secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"}), frozen(secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "2"})), secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "3"}),
			nil,
			[]string{"Secret/ns/s"},
		},
		"env of what is mutable": {
			secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"}), secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "2"}), secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "3"}),
			nil, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			beside := frozen(secret(h, "beside", refs.EnvFrom, reloadtest.Data{"a": "1"}))
			stored := decide.Workload(h, testUID, "", []decide.Input{beside, test.before}).Baseline
			first := decide.Workload(h, testUID, stored, []decide.Input{beside, test.now})
			require.Equal(t, spec.StepRestart, first.Step)
			require.ElementsMatch(t, test.frozen, first.MayReadOld())
			require.ElementsMatch(t, test.frozen, delivered(first).MayReadOld())
			require.Equal(t, spec.StepNothing, decide.Workload(h, testUID, first.Baseline, []decide.Input{beside, test.now}).Step)
			second := decide.Workload(h, testUID, first.Baseline, []decide.Input{beside, test.next})
			require.Equal(t, spec.StepRestart, second.Step)
			require.ElementsMatch(t, test.then, second.MayReadOld())
		})
	}
}

// Before an immutable object had an id of its own, it was recorded as others are.
func TestAnImmutableVolumeOnRecordAsAnyOtherIsCompared(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	was, is := secret(h, "s", refs.Volume, reloadtest.Data{"a": "1"}), secret(h, "s", refs.Volume, reloadtest.Data{"a": "2"})
	stored := decide.Workload(h, testUID, "", []decide.Input{under(was, spec.Restart)}).Baseline
	require.Equal(t, spec.StepRestart, decide.Workload(h, testUID, stored, []decide.Input{frozen(is)}).Step)
	require.Equal(t, decide.Behind, decide.StatusOf(h, testUID, stored, decide.AsRecorded(h, testUID, stored, frozen(is))))
	same := decide.Workload(h, testUID, stored, []decide.Input{frozen(was)})
	require.Equal(t, spec.StepAdopt, same.Step)
	require.Equal(t, spec.StepRestart, decide.Workload(h, testUID, same.Baseline, []decide.Input{is}).Step)
	require.Equal(t, decide.Behind, decide.StatusOf(h, testUID, same.Baseline, decide.AsRecorded(h, testUID, same.Baseline, is)))
}

func TestBaselineThatCannotBeComparedIsAdoptedAnew(t *testing.T) {
	h, lost := reloadtest.Hasher(t, 1), reloadtest.Hasher(t, 2)
	now := []decide.Input{secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "2"})}
	ofOther := decide.Workload(lost, testUID, "", []decide.Input{secret(lost, "s", refs.EnvFrom, reloadtest.Data{"a": "1"})}).Baseline
	ofCopy := decide.Workload(h, "another-uid", "", []decide.Input{secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"})}).Baseline
	tests := map[string]struct {
		stored string
		reason spec.Reason
		loud   bool
	}{
		"garbage":                            {"garbage", spec.ReasonUnreadable, true},
		"a version of the future":            {"v3:00000000:", spec.ReasonUnreadable, true},
		"a version of the past":              {"v1:00000000:", spec.ReasonUnreadable, true},
		"the key is lost":                    {ofOther, spec.ReasonOtherKey, true},
		"the workload was copied from other": {ofCopy, spec.ReasonReferences, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			decision := decide.Workload(h, testUID, test.stored, now)
			require.Equal(t, spec.StepAdopt, decision.Step)
			require.Equal(t, test.reason, decision.Reason)
			require.Equal(t, test.loud, decision.LostBaseline())
			require.Equal(t, decide.Workload(h, testUID, "", now).Baseline, decision.Baseline)
		})
	}
	require.Equal(t, spec.StepNothing, decide.Workload(h, testUID, "garbage", nil).Step, "nothing governed: not ours to touch")
}

func TestTheRuleOfTheFirstChangeIsNamed(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	one, two := secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"}), secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "1"})
	two.Rule = "second"
	stored := decide.Workload(h, testUID, "", []decide.Input{one, two}).Baseline
	two.Digests = reloadtest.Digests(h, reloadtest.Data{"a": "2"})
	require.Equal(t, "second", decide.Workload(h, testUID, stored, []decide.Input{one, two}).Rule)
}
