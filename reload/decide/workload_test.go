package decide

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
)

const testUID = types.UID("5d1c7a1e")

// secret is a Secret of that name, governed by rule r under action Auto, with
// that data.
func secret(h *digest.Hasher, name string, mode refs.Mode, content reloadtest.Data, keys ...string) Input {
	return Input{
		Reference: refs.Reference{Kind: object.Secret, Name: name, Mode: mode, Keys: keys},
		Object:    object.Ref{Kind: object.Secret, Namespace: "ns", Name: name},
		Rule:      "r", Action: spec.Auto, Exists: true, Digests: reloadtest.Digests(h, content),
	}
}

func (c Input) under(action spec.Action) Input { c.Action = action; return c }

func (c Input) ungoverned() Input { c.Rule, c.Action = "", spec.None; return c }

func (c Input) missing() Input { c.Exists, c.Absent, c.Digests = false, true, nil; return c }

// without is c while it is not there, and pods run that started without it.
func (c Input) without() Input { c = c.missing().optional(); c.StartedWithout = true; return c }

func (c Input) unread() Input { c.Exists, c.Digests = false, nil; return c }

func (c Input) optional() Input { c.Optional, c.Required = true, nil; return c }

func (c Input) requiring(keys ...string) Input { c.Required = keys; return c }

func (c Input) frozen() Input { c.Immutable = true; return c }

func (c Input) released() Input { c.Released = true; return c }

func (c Input) changedAt(at time.Time) Input {
	c.ChangedAt, c.KeysChangedAt = at, at
	return c
}

// otherKeys is c, whose keys were last written at that time.
func (c Input) otherKeys(at time.Time) Input { c.KeysChangedAt = at; return c }

func TestDecideWorkload(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	v1, v2 := reloadtest.Data{"a": "1", "b": "1"}, reloadtest.Data{"a": "2", "b": "1"}
	tests := map[string]struct {
		// before was adopted; nil means that there is no baseline.
		before, now []Input
		step        spec.Step
		reason      spec.Reason
		changed     []string
		missing     []string
		// gone is true when the baseline is to be removed.
		gone bool
	}{
		"first sight of env is adopted": {
			now: []Input{secret(h, "s", refs.Env, v1, "a")}, step: spec.StepAdopt, reason: spec.ReasonFirstSight,
		},
		"first sight of a mounted volume is not even written": {
			now: []Input{secret(h, "s", refs.Volume, v1)}, step: spec.StepNothing, reason: spec.ReasonUnchanged, gone: true,
		},
		"first sight of a volume under Restart is adopted": {
			now: []Input{secret(h, "s", refs.Volume, v1).under(spec.Restart)}, step: spec.StepAdopt, reason: spec.ReasonFirstSight,
		},
		"first sight of an object that does not exist is not written": {
			now: []Input{secret(h, "s", refs.Env, v1, "a").missing()}, step: spec.StepNothing, reason: spec.ReasonUnchanged, gone: true,
		},
		"first sight of an object that nobody governs is not written": {
			now: []Input{secret(h, "s", refs.Env, v1, "a").ungoverned()}, step: spec.StepNothing, reason: spec.ReasonUnchanged, gone: true,
		},
		"the same data is nothing": {
			before: []Input{secret(h, "s", refs.EnvFrom, v1)}, now: []Input{secret(h, "s", refs.EnvFrom, v1)},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"a change of an env key restarts": {
			before: []Input{secret(h, "s", refs.Env, v1, "a")}, now: []Input{secret(h, "s", refs.Env, v2, "a")},
			step: spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"a change of a subPath mount restarts": {
			before: []Input{secret(h, "s", refs.SubPath, v1)}, now: []Input{secret(h, "s", refs.SubPath, v2)},
			step: spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"a change of a volume that an init container mounts restarts": {
			before: []Input{secret(h, "s", refs.InitVolume, v1), secret(h, "s", refs.Volume, v1)},
			now:    []Input{secret(h, "s", refs.InitVolume, v2), secret(h, "s", refs.Volume, v2)},
			step:   spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"an init container's volume that was taken for any other is adopted": {
			before: []Input{secret(h, "t", refs.Env, v1, "a"), secret(h, "s", refs.Volume, v1)},
			now:    []Input{secret(h, "t", refs.Env, v1, "a"), secret(h, "s", refs.InitVolume, v2)},
			step:   spec.StepAdopt, reason: spec.ReasonReferences,
		},
		"an init container's volume that was taken for any other, beside a change, is adopted with it": {
			before: []Input{secret(h, "t", refs.Env, v1, "a"), secret(h, "s", refs.Volume, v1)},
			now:    []Input{secret(h, "t", refs.Env, v2, "a"), secret(h, "s", refs.InitVolume, v2)},
			step:   spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/t"},
		},
		"under Refresh an init container's volume is left alone": {
			before: []Input{secret(h, "s", refs.InitVolume, v1)}, now: []Input{secret(h, "s", refs.InitVolume, v2).under(spec.Refresh)},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"a change of a key that nobody consumes is nothing": {
			before: []Input{secret(h, "s", refs.Env, v1, "b")}, now: []Input{secret(h, "s", refs.Env, v2, "b")},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"an optional key that goes away is a change": {
			before: []Input{secret(h, "s", refs.Env, v1, "a").optional()}, now: []Input{secret(h, "s", refs.Env, reloadtest.Data{"b": "1"}, "a").optional()},
			step: spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"only what changed is named": {
			before: []Input{secret(h, "s", refs.EnvFrom, v1), secret(h, "t", refs.EnvFrom, v1)},
			now:    []Input{secret(h, "s", refs.EnvFrom, v1), secret(h, "t", refs.EnvFrom, v2)},
			step:   spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/t"},
		},
		"an object consumed in two modes is named once": {
			before: []Input{secret(h, "s", refs.Env, v1, "a"), secret(h, "s", refs.SubPath, v1, "a"), secret(h, "s", refs.EnvFrom, v1)},
			now:    []Input{secret(h, "s", refs.Env, v2, "a"), secret(h, "s", refs.SubPath, v2, "a"), secret(h, "s", refs.EnvFrom, v2)},
			step:   spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"env and volume of a changed object make one restart": {
			before: []Input{secret(h, "s", refs.Env, v1, "a"), secret(h, "s", refs.Volume, v1)},
			now:    []Input{secret(h, "s", refs.Env, v2, "a"), secret(h, "s", refs.Volume, v2)},
			step:   spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"a changed volume beside unchanged env is nothing to the workload": {
			before: []Input{secret(h, "s", refs.Env, v1, "b"), secret(h, "t", refs.Volume, v1)},
			now:    []Input{secret(h, "s", refs.Env, v2, "b"), secret(h, "t", refs.Volume, v2)},
			step:   spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"under Restart a changed volume restarts": {
			before: []Input{secret(h, "s", refs.Volume, v1).under(spec.Restart)}, now: []Input{secret(h, "s", refs.Volume, v2).under(spec.Restart)},
			step: spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"under Refresh env is left alone, and what it runs stays on record": {
			before: []Input{secret(h, "s", refs.Env, v1, "a")}, now: []Input{secret(h, "s", refs.Env, v2, "a").under(spec.Refresh)},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"under None nothing is done, and what it runs stays on record": {
			before: []Input{secret(h, "s", refs.Volume, v1).under(spec.Restart)}, now: []Input{secret(h, "s", refs.Volume, v2).under(spec.None)},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"a volume that is no longer restarted for leaves the record": {
			before: []Input{secret(h, "s", refs.Volume, v1).under(spec.Restart)}, now: []Input{secret(h, "s", refs.Volume, v2)},
			step: spec.StepAdopt, reason: spec.ReasonReferences, gone: true,
		},
		"a reference that is added is adopted": {
			before: []Input{secret(h, "s", refs.EnvFrom, v1)}, now: []Input{secret(h, "s", refs.EnvFrom, v1), secret(h, "t", refs.EnvFrom, v2)},
			step: spec.StepAdopt, reason: spec.ReasonReferences,
		},
		"a key that is added to the env is adopted": {
			before: []Input{secret(h, "s", refs.Env, v1, "a")}, now: []Input{secret(h, "s", refs.Env, v2, "a", "b")},
			step: spec.StepAdopt, reason: spec.ReasonReferences,
		},
		"a reference that is removed is dropped": {
			before: []Input{secret(h, "s", refs.EnvFrom, v1), secret(h, "t", refs.EnvFrom, v1)}, now: []Input{secret(h, "s", refs.EnvFrom, v1)},
			step: spec.StepAdopt, reason: spec.ReasonReferences,
		},
		"the baseline of a workload without references is removed": {
			before: []Input{secret(h, "s", refs.EnvFrom, v1)}, now: nil,
			step: spec.StepAdopt, reason: spec.ReasonReferences, gone: true,
		},
		"a required key that goes away holds": {
			before: []Input{secret(h, "s", refs.Env, v1, "a").requiring("a")}, now: []Input{secret(h, "s", refs.Env, reloadtest.Data{"b": "1"}, "a").requiring("a")},
			step: spec.StepHold, reason: spec.ReasonMissing, missing: []string{"key a of Secret/ns/s"},
		},
		"a required key that was never there is not written": {
			now: []Input{secret(h, "s", refs.Env, reloadtest.Data{"b": "1"}, "a").requiring("a")}, step: spec.StepNothing, reason: spec.ReasonUnchanged, gone: true,
		},
		"a required key that was never there appears, and is adopted": {
			before: []Input{secret(h, "s", refs.Env, reloadtest.Data{"b": "1"}, "a").requiring("a")}, now: []Input{secret(h, "s", refs.Env, v1, "a").requiring("a")},
			step: spec.StepAdopt, reason: spec.ReasonFirstSight,
		},
		"a volume without a key that it lists holds the restart for env": {
			before: []Input{secret(h, "s", refs.Env, v1, "a"), secret(h, "t", refs.Volume, v1, "b").requiring("b")},
			now:    []Input{secret(h, "s", refs.Env, v2, "a"), secret(h, "t", refs.Volume, reloadtest.Data{"a": "1"}, "b").requiring("b")},
			step:   spec.StepHold, reason: spec.ReasonMissing, missing: []string{"key b of Secret/ns/t"},
		},
		"a volume without a key that it lists is nothing where nothing is held": {
			before: []Input{secret(h, "s", refs.Env, v1, "a"), secret(h, "t", refs.Volume, v1, "b").requiring("b")},
			now:    []Input{secret(h, "s", refs.Env, v1, "a"), secret(h, "t", refs.Volume, reloadtest.Data{"a": "1"}, "b").requiring("b")},
			step:   spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"an object that is gone holds": {
			before: []Input{secret(h, "s", refs.EnvFrom, v1)}, now: []Input{secret(h, "s", refs.EnvFrom, v1).missing()},
			step: spec.StepHold, reason: spec.ReasonMissing, missing: []string{"Secret/ns/s"},
		},
		"an object that is gone, and that its clone's rule went with, holds": {
			before: []Input{secret(h, "s", refs.EnvFrom, v1)}, now: []Input{secret(h, "s", refs.EnvFrom, v1).missing().ungoverned()},
			step: spec.StepHold, reason: spec.ReasonMissing, missing: []string{"Secret/ns/s"},
		},
		"an object that was not read yet stays on record": {
			before: []Input{secret(h, "s", refs.EnvFrom, v1)}, now: []Input{secret(h, "s", refs.EnvFrom, v1).unread()},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"an optional object that is gone stays on record": {
			before: []Input{secret(h, "s", refs.EnvFrom, v1).optional()}, now: []Input{secret(h, "s", refs.EnvFrom, v1).missing().optional()},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"what pods started without is on record": {
			now: []Input{secret(h, "s", refs.EnvFrom, v1).without()}, step: spec.StepAdopt, reason: spec.ReasonFirstSight,
		},
		"what pods started without appears, and restarts": {
			before: []Input{secret(h, "s", refs.EnvFrom, v1).without()}, now: []Input{secret(h, "s", refs.EnvFrom, v1).optional()},
			step: spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"what pods started without appears, and is missing a key that was not there either": {
			before: []Input{secret(h, "s", refs.Env, v1, "a").without()}, now: []Input{secret(h, "s", refs.Env, reloadtest.Data{"b": "1"}, "a").optional()},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"what no pod started without appears, and is adopted": {
			before: []Input{secret(h, "s", refs.EnvFrom, v1).missing().optional()}, now: []Input{secret(h, "s", refs.EnvFrom, v1).optional()},
			step: spec.StepAdopt, reason: spec.ReasonFirstSight,
		},
		"pods that cannot start yet may do so with what they could do without": {
			now:  []Input{secret(h, "s", refs.EnvFrom, v1).without(), secret(h, "t", refs.EnvFrom, v1).missing()},
			step: spec.StepNothing, reason: spec.ReasonUnchanged, gone: true,
		},
		"a volume that pods started without is the kubelet's to fill": {
			now: []Input{secret(h, "s", refs.Volume, v1).without()}, step: spec.StepNothing, reason: spec.ReasonUnchanged, gone: true,
		},
		"what pods started without is not written where nobody asks": {
			now: []Input{secret(h, "s", refs.EnvFrom, v1).without().under(spec.None)}, step: spec.StepNothing, reason: spec.ReasonUnchanged, gone: true,
		},
		"an optional object that is gone from under its pods stays on record": {
			before: []Input{secret(h, "s", refs.EnvFrom, v1).optional()}, now: []Input{secret(h, "s", refs.EnvFrom, v1).without()},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"an object that nobody governs any more holds": {
			before: []Input{secret(h, "s", refs.EnvFrom, v1)}, now: []Input{secret(h, "s", refs.EnvFrom, v2).ungoverned()},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"one object gone holds the restart for another": {
			before: []Input{secret(h, "s", refs.EnvFrom, v1), secret(h, "t", refs.EnvFrom, v1)},
			now:    []Input{secret(h, "s", refs.EnvFrom, v1).missing(), secret(h, "t", refs.EnvFrom, v2)},
			step:   spec.StepHold, reason: spec.ReasonMissing, missing: []string{"Secret/ns/s"},
		},
		"an object of nobody's gone holds the restart for another": {
			before: []Input{secret(h, "t", refs.EnvFrom, v1)},
			now:    []Input{secret(h, "s", refs.EnvFrom, v1).missing().ungoverned(), secret(h, "t", refs.EnvFrom, v2)},
			step:   spec.StepHold, reason: spec.ReasonMissing, missing: []string{"Secret/ns/s"},
		},
		"what is new is adopted while a restart is held": {
			before: []Input{secret(h, "s", refs.EnvFrom, v1), secret(h, "t", refs.EnvFrom, v1)},
			now:    []Input{secret(h, "s", refs.EnvFrom, v1).missing(), secret(h, "t", refs.EnvFrom, v2), secret(h, "u", refs.EnvFrom, v1)},
			step:   spec.StepAdopt, reason: spec.ReasonReferences,
		},
		"one optional object gone does not hide the change of another": {
			before: []Input{secret(h, "s", refs.EnvFrom, v1).optional(), secret(h, "t", refs.EnvFrom, v1)},
			now:    []Input{secret(h, "s", refs.EnvFrom, v1).missing().optional(), secret(h, "t", refs.EnvFrom, v2)},
			step:   spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/t"},
		},
		"an immutable volume is adopted": {
			now: []Input{secret(h, "s", refs.Volume, v1).frozen()}, step: spec.StepAdopt, reason: spec.ReasonFirstSight,
		},
		"an immutable volume restarts if it is recreated as mutable with other data": {
			before: []Input{secret(h, "s", refs.Volume, v1).frozen()}, now: []Input{secret(h, "s", refs.Volume, v2)},
			step: spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"an immutable volume under Restart restarts if it is recreated with other data": {
			before: []Input{secret(h, "s", refs.Volume, v1).frozen()}, now: []Input{secret(h, "s", refs.Volume, v2).under(spec.Restart)},
			step: spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/s"},
		},
		"an immutable volume stays recorded if it is recreated as mutable with the same data": {
			before: []Input{secret(h, "s", refs.Volume, v1).frozen()}, now: []Input{secret(h, "s", refs.Volume, v1)},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"an immutable volume that is deleted stays recorded": {
			before: []Input{secret(h, "s", refs.Volume, v1).frozen().optional()}, now: []Input{secret(h, "s", refs.Volume, v1).missing().optional()},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"an immutable volume that is switched off stays recorded": {
			before: []Input{secret(h, "s", refs.Volume, v1).frozen()}, now: []Input{secret(h, "s", refs.Volume, v2).under(spec.None)},
			step: spec.StepNothing, reason: spec.ReasonUnchanged,
		},
		"an immutable object restarts env if it is recreated with other data": {
			before: []Input{secret(h, "s", refs.EnvFrom, v1).frozen()}, now: []Input{secret(h, "s", refs.EnvFrom, v2).frozen()},
			step: spec.StepRestart, reason: spec.ReasonChanged, changed: []string{"Secret/ns/s"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stored := ""
			if test.before != nil {
				stored = Workload(h, testUID, "", test.before).Baseline
			}
			decision := Workload(h, testUID, stored, test.now)
			require.Equal(t, test.step, decision.Step)
			require.Equal(t, test.reason, decision.Reason)
			require.Equal(t, test.changed, decision.Changed)
			require.Equal(t, test.missing, decision.Missing)
			require.Equal(t, test.gone, decision.Baseline == "")

			after := Workload(h, testUID, decision.Baseline, test.now)
			require.Contains(t, []spec.Step{spec.StepNothing, spec.StepHold}, after.Step, "what was done is not done again")
			require.Equal(t, decision.Baseline, after.Baseline)
		})
	}
}

func TestKeyThatComesBackIsComparedWithWhatTheWorkloadRuns(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	with := func(content reloadtest.Data) []Input {
		return []Input{secret(h, "s", refs.Env, content, "a").requiring("a")}
	}
	stored := Workload(h, testUID, "", with(reloadtest.Data{"a": "1"})).Baseline
	held := Workload(h, testUID, stored, with(nil))
	require.Equal(t, spec.StepHold, held.Step)

	require.Equal(t, spec.StepNothing, Workload(h, testUID, held.Baseline, with(reloadtest.Data{"a": "1"})).Step)
	require.Equal(t, spec.StepRestart, Workload(h, testUID, held.Baseline, with(reloadtest.Data{"a": "2"})).Step)
}

func TestChangeThatWasHeldIsActedOnOnceWhatIsMissingIsBack(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	gone, changes := secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"}), secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "1"})
	changed := secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "2"})
	stored := Workload(h, testUID, "", []Input{gone, changes}).Baseline
	held := Workload(h, testUID, stored, []Input{gone.missing(), changed})
	require.Equal(t, spec.StepHold, held.Step)
	require.Equal(t, stored, held.Baseline)

	require.Equal(t, spec.StepNothing, Workload(h, testUID, held.Baseline, []Input{gone, changes}).Step)
	restart := Workload(h, testUID, held.Baseline, []Input{gone, changed})
	require.Equal(t, spec.StepRestart, restart.Step)
	require.Equal(t, []string{"Secret/ns/t"}, restart.Changed)
}

func TestWhatIsNewWhileARestartWaitsIsOnRecordFromThenOn(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	was, is, back := reloadtest.Data{"a": "1"}, reloadtest.Data{"a": "2"}, reloadtest.Data{"a": "1"}
	stored := Workload(h, testUID, "", []Input{secret(h, "s", refs.EnvFrom, was)}).Baseline
	waits := Workload(h, testUID, stored, []Input{secret(h, "s", refs.EnvFrom, is), secret(h, "t", refs.EnvFrom, was)})
	require.Equal(t, spec.StepRestart, waits.Step)

	again := Workload(h, testUID, waits.BaselineWhileWaiting, []Input{secret(h, "s", refs.EnvFrom, is), secret(h, "t", refs.EnvFrom, was)})
	require.Equal(t, []string{"Secret/ns/s"}, again.Changed, "it is still due")
	require.Equal(t, waits.BaselineWhileWaiting, again.BaselineWhileWaiting, "what was noted is not noted again")
	other := Workload(h, testUID, waits.BaselineWhileWaiting, []Input{secret(h, "s", refs.EnvFrom, back), secret(h, "t", refs.EnvFrom, is)})
	require.Equal(t, []string{"Secret/ns/t"}, other.Changed, "what is new is not first seen when the wait is over")
}

func TestObjectThatComesBackIsComparedWithWhatTheWorkloadRuns(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	was, is := secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"}), secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "2"})
	stored := Workload(h, testUID, "", []Input{was}).Baseline
	stored = Workload(h, testUID, stored, []Input{was.missing()}).Baseline

	require.Equal(t, spec.StepNothing, Workload(h, testUID, stored, []Input{was}).Step)
	require.Equal(t, spec.StepRestart, Workload(h, testUID, stored, []Input{is}).Step)
}

func TestWhatIsGoneWhenPodsAreRestartedRestartsThemWhenItIsBack(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	gone, changes := secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"}).optional(), secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "1"})
	changed := secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "2"})
	stored := Workload(h, testUID, "", []Input{gone, changes}).Baseline
	require.Equal(t, spec.StepNothing, Workload(h, testUID, stored, []Input{gone.without(), changes}).Step)
	restart := Workload(h, testUID, stored, []Input{gone.without(), changed})
	require.Equal(t, spec.StepRestart, restart.Step)

	back := Workload(h, testUID, restart.Baseline, []Input{gone, changed})
	require.Equal(t, spec.StepRestart, back.Step)
	require.Equal(t, []string{"Secret/ns/s"}, back.Changed)
}

func TestPodsThatCameWhileSomethingWasGoneAreRestartedWhenItIsBack(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	was := secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"}).optional()
	stored := Workload(h, testUID, "", []Input{was}).Baseline
	for sentence, gone := range map[string]Input{"governed": was.without(), "while no rule is about it": was.without().ungoverned()} {
		t.Run(sentence, func(t *testing.T) {
			gone.StartedAfterDelete = true
			noted := Workload(h, testUID, stored, []Input{gone})
			require.Equal(t, spec.StepAdopt, noted.Step)
			require.Equal(t, spec.StepNothing, Workload(h, testUID, noted.Baseline, []Input{gone}).Step)
			require.Equal(t, spec.StepRestart, Workload(h, testUID, noted.Baseline, []Input{was}).Step)
		})
	}
}

// The pods of that rollout may be older than what is gone is gone.
func TestWhereARolloutBroughtTheChangeWhatIsGoneStaysOnRecord(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	gone, changes := secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"}).optional(), secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "1"})
	changed := secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "2"})
	stored := Workload(h, testUID, "", []Input{gone, changes}).Baseline
	brought := Workload(h, testUID, stored, []Input{gone.without(), changed}).delivered()
	require.Equal(t, spec.StepNothing, Workload(h, testUID, brought.Baseline, []Input{gone, changed}).Step)
}

func TestPodsThatMountedAnImmutableObjectAreRestartedForTheNextDifference(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	volume := func(value string) Input { return secret(h, "s", refs.Volume, reloadtest.Data{"a": value}) }
	look := func(stored string, now Input) Decision { return Workload(h, testUID, stored, []Input{now}) }
	stored := look("", volume("1").frozen()).Baseline
	gone := look(stored, volume("1").missing())
	require.Equal(t, spec.StepHold, gone.Step)
	require.Equal(t, spec.StepNothing, look(gone.Baseline, volume("1")).Step, "recreated with the same data")
	restart := look(gone.Baseline, volume("2"))
	require.Equal(t, spec.StepRestart, restart.Step)
	again := look(restart.Baseline, volume("3"))
	require.Equal(t, spec.StepRestart, again.Step, "the pods that were started then may have found it as it was before")

	released := look(again.Baseline, volume("3").released())
	require.Equal(t, spec.StepAdopt, released.Step)
	require.Equal(t, spec.StepNothing, look(released.Baseline, volume("4")).Step, "pods that come after that are refreshed")
}

func TestWhatNoPodReadsIsImmutableNoMore(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	env := func(value string) Input { return secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": value}) }
	look := func(stored string, now Input) Decision { return Workload(h, testUID, stored, []Input{now}) }
	stored := look("", env("1").frozen()).Baseline
	require.Equal(t, []string{"Secret/ns/s"}, look(stored, env("1")).Pinned)

	released := look(stored, env("1").released())
	require.Equal(t, spec.StepAdopt, released.Step)
	require.Empty(t, look(released.Baseline, env("1")).Pinned)
	require.Equal(t, spec.StepRestart, look(released.Baseline, env("2")).Step)

	onItsWay := look(stored, env("2").released())
	require.Equal(t, spec.StepRestart, onItsWay.Step, "a pod that no cache has yet may have read what was")
	require.Empty(t, onItsWay.MayReadOld())
}

func TestARestartNamesWhatKubeletsMayHandOutAsItWas(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	for name, test := range map[string]struct {
		before, now, next Input
		frozen, then      []string // at the change to now, and to next
	}{
		"env, recreated as mutable": {
			secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"}).frozen(), secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "2"}), secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "3"}),
			[]string{"Secret/ns/s"},
			[]string{"Secret/ns/s"},
		},
		"a volume, recreated as immutable": {
			secret(h, "s", refs.Volume, reloadtest.Data{"a": "1"}).frozen(), secret(h, "s", refs.Volume, reloadtest.Data{"a": "2"}).frozen(), secret(h, "s", refs.Volume, reloadtest.Data{"a": "3"}).frozen(),
			[]string{"Secret/ns/s"},
			[]string{"Secret/ns/s"},
		},
		"a volume under Restart, recreated as immutable": {
			secret(h, "s", refs.Volume, reloadtest.Data{"a": "1"}).frozen().under(spec.Restart), secret(h, "s", refs.Volume, reloadtest.Data{"a": "2"}).frozen().under(spec.Restart), secret(h, "s", refs.Volume, reloadtest.Data{"a": "3"}).under(spec.Restart),
			[]string{"Secret/ns/s"},
			[]string{"Secret/ns/s"},
		},
		"env of what is immutable from now on": {
			secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"}), secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "2"}).frozen(), secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "3"}),
			nil,
			[]string{"Secret/ns/s"},
		},
		"env of what is mutable": {
			secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"}), secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "2"}), secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "3"}),
			nil, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			beside := secret(h, "beside", refs.EnvFrom, reloadtest.Data{"a": "1"}).frozen()
			stored := Workload(h, testUID, "", []Input{beside, test.before}).Baseline
			first := Workload(h, testUID, stored, []Input{beside, test.now})
			require.Equal(t, spec.StepRestart, first.Step)
			require.ElementsMatch(t, test.frozen, first.MayReadOld())
			require.ElementsMatch(t, test.frozen, first.delivered().MayReadOld())
			require.Equal(t, spec.StepNothing, Workload(h, testUID, first.Baseline, []Input{beside, test.now}).Step)
			second := Workload(h, testUID, first.Baseline, []Input{beside, test.next})
			require.Equal(t, spec.StepRestart, second.Step)
			require.ElementsMatch(t, test.then, second.MayReadOld())
		})
	}
}

// Before an immutable object had an id of its own, it was recorded as others are.
func TestAnImmutableVolumeOnRecordAsAnyOtherIsCompared(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	was, is := secret(h, "s", refs.Volume, reloadtest.Data{"a": "1"}), secret(h, "s", refs.Volume, reloadtest.Data{"a": "2"})
	stored := Workload(h, testUID, "", []Input{was.under(spec.Restart)}).Baseline
	require.Equal(t, spec.StepRestart, Workload(h, testUID, stored, []Input{is.frozen()}).Step)
	require.Equal(t, Behind, StatusOf(h, testUID, stored, AsRecorded(h, testUID, stored, is.frozen())))
	same := Workload(h, testUID, stored, []Input{was.frozen()})
	require.Equal(t, spec.StepAdopt, same.Step)
	require.Equal(t, spec.StepRestart, Workload(h, testUID, same.Baseline, []Input{is}).Step)
	require.Equal(t, Behind, StatusOf(h, testUID, same.Baseline, AsRecorded(h, testUID, same.Baseline, is)))
}

func TestBaselineThatCannotBeComparedIsAdoptedAnew(t *testing.T) {
	h, lost := reloadtest.Hasher(t, 1), reloadtest.Hasher(t, 2)
	now := []Input{secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "2"})}
	ofOther := Workload(lost, testUID, "", []Input{secret(lost, "s", refs.EnvFrom, reloadtest.Data{"a": "1"})}).Baseline
	ofCopy := Workload(h, "another-uid", "", []Input{secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"})}).Baseline
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
			decision := Workload(h, testUID, test.stored, now)
			require.Equal(t, spec.StepAdopt, decision.Step)
			require.Equal(t, test.reason, decision.Reason)
			require.Equal(t, test.loud, decision.LostBaseline())
			require.Equal(t, Workload(h, testUID, "", now).Baseline, decision.Baseline)
		})
	}
	require.Equal(t, spec.StepNothing, Workload(h, testUID, "garbage", nil).Step, "nothing governed: not ours to touch")
}

func TestTheRuleOfTheFirstChangeIsNamed(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	one, two := secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"}), secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "1"})
	two.Rule = "second"
	stored := Workload(h, testUID, "", []Input{one, two}).Baseline
	two.Digests = reloadtest.Digests(h, reloadtest.Data{"a": "2"})
	require.Equal(t, "second", Workload(h, testUID, stored, []Input{one, two}).Rule)
}
