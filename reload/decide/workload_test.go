package decide_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

const testUID = reloadtest.UID

// secret is a Secret of that name, governed by rule r under action Auto, with
// that data.
func secret(h *digest.Hasher, name string, mode refs.Mode, content reloadtest.Data, keys ...string) decide.Input {
	return decide.Input{
		Reference: refs.Reference{Kind: object.Secret, Name: name, Mode: mode, Keys: keys},
		Object:    object.Ref{Kind: object.Secret, Namespace: "ns", Name: name},
		Rule:      "r", Action: spec.Auto, Exists: true, Digests: reloadtest.Digests(h, content),
	}
}

// stateOf is that of a Deployment with that baseline, which consumes inputs.
func stateOf(h *digest.Hasher, uid types.UID, stored string, inputs []decide.Input) decide.State {
	w := &workload.Workload{ObjectMeta: metav1.ObjectMeta{UID: uid}, Kind: kinds.KindDeployment}
	known := decide.Known{Baseline: stored, Record: decide.Record{Baseline: stored}, Recorded: stored != ""}
	return decide.State{Hasher: h, Workload: w, Owner: workload.RootOwner{Root: w}, Inputs: inputs, Known: known}
}

func judged(h *digest.Hasher, uid types.UID, stored string, inputs []decide.Input) decide.Decision {
	return decide.Workload(stateOf(h, uid, stored, inputs))
}

func under(c decide.Input, action spec.Action) decide.Input { c.Action = action; return c }

func ungoverned(c decide.Input) decide.Input { c.Rule, c.Action = "", spec.None; return c }

func missing(c decide.Input) decide.Input { c.Exists, c.Absent, c.Digests = false, true, nil; return c }

// A new leader has not read what owners asked for when it first looks.
func TestNothingIsRestartedWhileAnotherObjectIsNotKnown(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	of := func(content reloadtest.Data) decide.Input { return secret(h, "shared", refs.Env, content, "k") }
	own := secret(h, "own", refs.Env, reloadtest.Data{"k": "1"}, "k")
	own.Rule, own.OptIn, own.Required = "", spec.Headwater, []string{"k"}
	stored := judged(h, testUID, "", []decide.Input{of(reloadtest.Data{"k": "1"}), own}).Baseline
	changed := of(reloadtest.Data{"k": "2"})
	for sentence, test := range map[string]struct {
		own    decide.Input
		step   spec.Step
		reason spec.Reason
	}{
		"it was read":           {own, spec.StepRestart, spec.ReasonChanged},
		"it has not been read":  {decide.Input{Reference: own.Reference, Object: own.Object, OptIn: own.OptIn, Action: own.Action}, spec.StepNothing, spec.ReasonDataUnread},
		"it is known not to be": {missing(own), spec.StepHold, spec.ReasonMissing},
	} {
		t.Run(sentence, func(t *testing.T) {
			d := judged(h, testUID, stored, []decide.Input{changed, test.own})
			require.Equal(t, test.step, d.Step)
			require.Equal(t, test.reason, d.Reason)
		})
	}
}

// without is c while it is not there, and pods run that started without it.
func without(c decide.Input) decide.Input {
	c = optional(missing(c))
	c.StartedWithout = true
	return c
}

func unread(c decide.Input) decide.Input { c.Exists, c.Digests = false, nil; return c }

func optional(c decide.Input) decide.Input { c.Optional, c.Required = true, nil; return c }

func TestARestartAfterWhichPodsWouldReadNothingIsHeld(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	whole := func(content reloadtest.Data) decide.Input { return secret(h, "s", refs.EnvFrom, content) }
	one := func(key string, content reloadtest.Data) decide.Input { return secret(h, "s", refs.Env, content, key) }
	optional := func(c decide.Input) decide.Input { c.Optional = true; return c }
	held, restarts, nothing := spec.StepHold, spec.StepRestart, spec.StepNothing
	for sentence, test := range map[string]struct {
		before, now []decide.Input
		step        spec.Step
	}{
		"no key is left":                     {[]decide.Input{whole(reloadtest.Data{"a": "1"})}, []decide.Input{whole(nil)}, held},
		"every value is empty":               {[]decide.Input{whole(reloadtest.Data{"a": "1", "b": "1"})}, []decide.Input{whole(reloadtest.Data{"a": "", "b": ""})}, held},
		"one value is left":                  {[]decide.Input{whole(reloadtest.Data{"a": "1", "b": "1"})}, []decide.Input{whole(reloadtest.Data{"a": "", "b": "1"})}, restarts},
		"the only key that is read is empty": {[]decide.Input{one("a", reloadtest.Data{"a": "1", "b": "1"})}, []decide.Input{one("a", reloadtest.Data{"a": "", "b": "1"})}, held},
		"one of two references may be without it": {
			[]decide.Input{optional(whole(reloadtest.Data{"a": "1"})), one("a", reloadtest.Data{"a": "1"})},
			[]decide.Input{optional(whole(nil)), one("a", reloadtest.Data{"a": ""})},
			held,
		},
		"it was empty before":        {[]decide.Input{whole(reloadtest.Data{"a": ""})}, []decide.Input{whole(reloadtest.Data{"a": ""})}, nothing},
		"the pods may be without it": {[]decide.Input{optional(whole(reloadtest.Data{"a": "1"}))}, []decide.Input{optional(whole(nil))}, restarts},
		"another key that is read has a value": {
			[]decide.Input{one("a", reloadtest.Data{"a": "1", "b": "1"}), one("b", reloadtest.Data{"a": "1", "b": "1"})},
			[]decide.Input{one("a", reloadtest.Data{"a": "", "b": "1"}), one("b", reloadtest.Data{"a": "", "b": "1"})},
			restarts,
		},
		"another object changed as well": {
			[]decide.Input{whole(reloadtest.Data{"a": "1"}), secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "1"})},
			[]decide.Input{whole(nil), secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "2"})},
			held,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			stored := judged(h, testUID, "", test.before).Baseline
			d := judged(h, testUID, stored, test.now)
			require.Equal(t, test.step, d.Step)
			if test.step != held {
				return
			}
			require.Equal(t, spec.ReasonEmptied, d.Reason)
			require.Equal(t, decide.WaitMissing, d.Wait.Reason)
			require.Equal(t, []string{"every value of Secret/ns/s"}, d.Missing)
			if waiting, writes := d.Now(); writes {
				stored = waiting.Baseline
			}
			require.Equal(t, test.step, judged(h, testUID, stored, test.now).Step, "it is held again")
			require.Equal(t, spec.StepNothing, judged(h, testUID, stored, test.before).Step, "the values are back")
		})
	}
}

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
func delivered(d decide.Decision) decide.Decision { return decide.AsDelivered(d) }

func TestDecideWorkload(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	v1, v2, other := reloadtest.Data{"a": "1", "b": "1"}, reloadtest.Data{"a": "2", "b": "1"}, reloadtest.Data{"b": "1"}
	type outcome struct {
		step             spec.Step
		reason           spec.Reason
		changed, missing []string
		gone             bool // the baseline is to be removed
	}
	sighted := outcome{step: spec.StepAdopt, reason: spec.ReasonFirstSight}
	unchanged := outcome{step: spec.StepNothing, reason: spec.ReasonUnchanged}
	unwritten := outcome{step: spec.StepNothing, reason: spec.ReasonUnchanged, gone: true}
	references := outcome{step: spec.StepAdopt, reason: spec.ReasonReferences}
	emptied := outcome{step: spec.StepAdopt, reason: spec.ReasonReferences, gone: true}
	restarts := func(changed string) outcome {
		return outcome{step: spec.StepRestart, reason: spec.ReasonChanged, changed: []string{changed}}
	}
	holds := func(missing string) outcome {
		return outcome{step: spec.StepHold, reason: spec.ReasonMissing, missing: []string{missing}}
	}
	in := func(inputs ...decide.Input) []decide.Input { return inputs }
	s := func(mode refs.Mode, content reloadtest.Data, keys ...string) decide.Input {
		return secret(h, "s", mode, content, keys...)
	}
	tt := func(mode refs.Mode, content reloadtest.Data, keys ...string) decide.Input {
		return secret(h, "t", mode, content, keys...)
	}
	tests := map[string]struct {
		before, now []decide.Input // before was adopted; nil means that there is no baseline
		outcome
	}{
		"first sight of env is adopted":                                      {nil, in(s(refs.Env, v1, "a")), sighted},
		"first sight of a mounted volume is not even written":                {nil, in(s(refs.Volume, v1)), unwritten},
		"first sight of a volume under Restart is adopted":                   {nil, in(under(s(refs.Volume, v1), spec.Restart)), sighted},
		"first sight of an object that does not exist is not written":        {nil, in(missing(s(refs.Env, v1, "a"))), unwritten},
		"first sight of an object that nobody governs is not written":        {nil, in(ungoverned(s(refs.Env, v1, "a"))), unwritten},
		"the same data is nothing":                                           {in(s(refs.EnvFrom, v1)), in(s(refs.EnvFrom, v1)), unchanged},
		"a change of an env key restarts":                                    {in(s(refs.Env, v1, "a")), in(s(refs.Env, v2, "a")), restarts("Secret/ns/s")},
		"a change of a subPath mount restarts":                               {in(s(refs.SubPath, v1)), in(s(refs.SubPath, v2)), restarts("Secret/ns/s")},
		"a change of a volume that an init container mounts restarts":        {in(s(refs.InitVolume, v1), s(refs.Volume, v1)), in(s(refs.InitVolume, v2), s(refs.Volume, v2)), restarts("Secret/ns/s")},
		"an init container's volume that was taken for any other is adopted": {in(tt(refs.Env, v1, "a"), s(refs.Volume, v1)), in(tt(refs.Env, v1, "a"), s(refs.InitVolume, v2)), references},
		"an init container's volume that was taken for any other, beside a change, is adopted with it": {
			in(tt(refs.Env, v1, "a"), s(refs.Volume, v1)), in(tt(refs.Env, v2, "a"), s(refs.InitVolume, v2)), restarts("Secret/ns/t"),
		},
		"under Refresh an init container's volume is left alone": {in(s(refs.InitVolume, v1)), in(under(s(refs.InitVolume, v2), spec.Refresh)), unchanged},
		"a change of a key that nobody consumes is nothing":      {in(s(refs.Env, v1, "b")), in(s(refs.Env, v2, "b")), unchanged},
		"an optional key that goes away is a change":             {in(optional(s(refs.Env, v1, "a"))), in(optional(s(refs.Env, other, "a"))), restarts("Secret/ns/s")},
		"only what changed is named":                             {in(s(refs.EnvFrom, v1), tt(refs.EnvFrom, v1)), in(s(refs.EnvFrom, v1), tt(refs.EnvFrom, v2)), restarts("Secret/ns/t")},
		"an object consumed in two modes is named once": {
			in(s(refs.Env, v1, "a"), s(refs.SubPath, v1, "a"), s(refs.EnvFrom, v1)), in(s(refs.Env, v2, "a"), s(refs.SubPath, v2, "a"), s(refs.EnvFrom, v2)), restarts("Secret/ns/s"),
		},
		"env and volume of a changed object make one restart":               {in(s(refs.Env, v1, "a"), s(refs.Volume, v1)), in(s(refs.Env, v2, "a"), s(refs.Volume, v2)), restarts("Secret/ns/s")},
		"a changed volume beside unchanged env is nothing to the workload":  {in(s(refs.Env, v1, "b"), tt(refs.Volume, v1)), in(s(refs.Env, v2, "b"), tt(refs.Volume, v2)), unchanged},
		"under Restart a changed volume restarts":                           {in(under(s(refs.Volume, v1), spec.Restart)), in(under(s(refs.Volume, v2), spec.Restart)), restarts("Secret/ns/s")},
		"under Refresh env is left alone, and what it runs stays on record": {in(s(refs.Env, v1, "a")), in(under(s(refs.Env, v2, "a"), spec.Refresh)), unchanged},
		"under None nothing is done, and what it runs stays on record":      {in(under(s(refs.Volume, v1), spec.Restart)), in(under(s(refs.Volume, v2), spec.None)), unchanged},
		"a volume that is no longer restarted for leaves the record":        {in(under(s(refs.Volume, v1), spec.Restart)), in(s(refs.Volume, v2)), emptied},
		"a reference that is added is adopted":                              {in(s(refs.EnvFrom, v1)), in(s(refs.EnvFrom, v1), tt(refs.EnvFrom, v2)), references},
		"a key that is added to the env is adopted":                         {in(s(refs.Env, v1, "a")), in(s(refs.Env, v2, "a", "b")), references},
		"a reference that is removed is dropped":                            {in(s(refs.EnvFrom, v1), tt(refs.EnvFrom, v1)), in(s(refs.EnvFrom, v1)), references},
		"the baseline of a workload without references is removed":          {in(s(refs.EnvFrom, v1)), nil, emptied},
		"a required key that goes away holds":                               {in(requiring(s(refs.Env, v1, "a"), "a")), in(requiring(s(refs.Env, other, "a"), "a")), holds("key a of Secret/ns/s")},
		"a required key that was never there is not written":                {nil, in(requiring(s(refs.Env, other, "a"), "a")), unwritten},
		"a required key that was never there appears, and is adopted":       {in(requiring(s(refs.Env, other, "a"), "a")), in(requiring(s(refs.Env, v1, "a"), "a")), sighted},
		"a volume without a key that it lists holds the restart for env": {
			in(s(refs.Env, v1, "a"), requiring(tt(refs.Volume, v1, "b"), "b")), in(s(refs.Env, v2, "a"), requiring(tt(refs.Volume, reloadtest.Data{"a": "1"}, "b"), "b")), holds("key b of Secret/ns/t"),
		},
		"a volume without a key that it lists is nothing where nothing is held": {
			in(s(refs.Env, v1, "a"), requiring(tt(refs.Volume, v1, "b"), "b")), in(s(refs.Env, v1, "a"), requiring(tt(refs.Volume, reloadtest.Data{"a": "1"}, "b"), "b")), unchanged,
		},
		"an object that is gone holds":                                                      {in(s(refs.EnvFrom, v1)), in(missing(s(refs.EnvFrom, v1))), holds("Secret/ns/s")},
		"an object that is gone, and that its clone's rule went with, holds":                {in(s(refs.EnvFrom, v1)), in(ungoverned(missing(s(refs.EnvFrom, v1)))), holds("Secret/ns/s")},
		"an object that was not read yet stays on record":                                   {in(s(refs.EnvFrom, v1)), in(unread(s(refs.EnvFrom, v1))), unchanged},
		"an optional object that is gone stays on record":                                   {in(optional(s(refs.EnvFrom, v1))), in(optional(missing(s(refs.EnvFrom, v1)))), unchanged},
		"what pods started without is on record":                                            {nil, in(without(s(refs.EnvFrom, v1))), sighted},
		"what pods started without appears, and restarts":                                   {in(without(s(refs.EnvFrom, v1))), in(optional(s(refs.EnvFrom, v1))), restarts("Secret/ns/s")},
		"what pods started without appears, and is missing a key that was not there either": {in(without(s(refs.Env, v1, "a"))), in(optional(s(refs.Env, other, "a"))), unchanged},
		"what no pod started without appears, and is adopted":                               {in(optional(missing(s(refs.EnvFrom, v1)))), in(optional(s(refs.EnvFrom, v1))), sighted},
		"pods that cannot start yet may do so with what they could do without":              {nil, in(without(s(refs.EnvFrom, v1)), missing(tt(refs.EnvFrom, v1))), unwritten},
		"a volume that pods started without is the kubelet's to fill":                       {nil, in(without(s(refs.Volume, v1))), unwritten},
		"what pods started without is not written where nobody asks":                        {nil, in(under(without(s(refs.EnvFrom, v1)), spec.None)), unwritten},
		"an optional object that is gone from under its pods stays on record":               {in(optional(s(refs.EnvFrom, v1))), in(without(s(refs.EnvFrom, v1))), unchanged},
		"an object that nobody governs any more holds":                                      {in(s(refs.EnvFrom, v1)), in(ungoverned(s(refs.EnvFrom, v2))), unchanged},
		"one object gone holds the restart for another":                                     {in(s(refs.EnvFrom, v1), tt(refs.EnvFrom, v1)), in(missing(s(refs.EnvFrom, v1)), tt(refs.EnvFrom, v2)), holds("Secret/ns/s")},
		"an object of nobody's gone holds the restart for another":                          {in(tt(refs.EnvFrom, v1)), in(ungoverned(missing(s(refs.EnvFrom, v1))), tt(refs.EnvFrom, v2)), holds("Secret/ns/s")},
		"what is new is adopted while a restart is held": {
			in(s(refs.EnvFrom, v1), tt(refs.EnvFrom, v1)), in(missing(s(refs.EnvFrom, v1)), tt(refs.EnvFrom, v2), secret(h, "u", refs.EnvFrom, v1)), references,
		},
		"one optional object gone does not hide the change of another": {
			in(optional(s(refs.EnvFrom, v1)), tt(refs.EnvFrom, v1)), in(optional(missing(s(refs.EnvFrom, v1))), tt(refs.EnvFrom, v2)), restarts("Secret/ns/t"),
		},
		"an immutable volume is adopted":                                                      {nil, in(frozen(s(refs.Volume, v1))), sighted},
		"an immutable volume restarts if it is recreated as mutable with other data":          {in(frozen(s(refs.Volume, v1))), in(s(refs.Volume, v2)), restarts("Secret/ns/s")},
		"an immutable volume under Restart restarts if it is recreated with other data":       {in(frozen(s(refs.Volume, v1))), in(under(s(refs.Volume, v2), spec.Restart)), restarts("Secret/ns/s")},
		"an immutable volume stays recorded if it is recreated as mutable with the same data": {in(frozen(s(refs.Volume, v1))), in(s(refs.Volume, v1)), unchanged},
		"an immutable volume that is deleted stays recorded":                                  {in(optional(frozen(s(refs.Volume, v1)))), in(optional(missing(s(refs.Volume, v1)))), unchanged},
		"an immutable volume that is switched off stays recorded":                             {in(frozen(s(refs.Volume, v1))), in(under(s(refs.Volume, v2), spec.None)), unchanged},
		"an immutable object restarts env if it is recreated with other data":                 {in(frozen(s(refs.EnvFrom, v1))), in(frozen(s(refs.EnvFrom, v2))), restarts("Secret/ns/s")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stored := ""
			if test.before != nil {
				stored = judged(h, testUID, "", test.before).Baseline
			}
			decision := judged(h, testUID, stored, test.now)
			require.Equal(t, test.step, decision.Step)
			require.Equal(t, test.reason, decision.Reason)
			require.Equal(t, test.changed, decision.Changed)
			require.Equal(t, test.missing, decision.Missing)
			require.Equal(t, test.gone, decision.Baseline == "")

			after := judged(h, testUID, decision.Baseline, test.now)
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
	stored := judged(h, testUID, "", with(reloadtest.Data{"a": "1"})).Baseline
	held := judged(h, testUID, stored, with(nil))
	require.Equal(t, spec.StepHold, held.Step)

	require.Equal(t, spec.StepNothing, judged(h, testUID, held.Baseline, with(reloadtest.Data{"a": "1"})).Step)
	require.Equal(t, spec.StepRestart, judged(h, testUID, held.Baseline, with(reloadtest.Data{"a": "2"})).Step)
}

func TestChangeThatWasHeldIsActedOnOnceWhatIsMissingIsBack(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	gone, changes := secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"}), secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "1"})
	changed := secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "2"})
	stored := judged(h, testUID, "", []decide.Input{gone, changes}).Baseline
	held := judged(h, testUID, stored, []decide.Input{missing(gone), changed})
	require.Equal(t, spec.StepHold, held.Step)
	require.Equal(t, stored, held.Baseline)

	require.Equal(t, spec.StepNothing, judged(h, testUID, held.Baseline, []decide.Input{gone, changes}).Step)
	restart := judged(h, testUID, held.Baseline, []decide.Input{gone, changed})
	require.Equal(t, spec.StepRestart, restart.Step)
	require.Equal(t, []string{"Secret/ns/t"}, restart.Changed)
}

func TestWhatIsNewWhileARestartWaitsIsOnRecordFromThenOn(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	was, is, back := reloadtest.Data{"a": "1"}, reloadtest.Data{"a": "2"}, reloadtest.Data{"a": "1"}
	stored := judged(h, testUID, "", []decide.Input{secret(h, "s", refs.EnvFrom, was)}).Baseline
	waits := judged(h, testUID, stored, []decide.Input{secret(h, "s", refs.EnvFrom, is), secret(h, "t", refs.EnvFrom, was)})
	require.Equal(t, spec.StepRestart, waits.Step)

	again := judged(h, testUID, waits.BaselineWhileWaiting, []decide.Input{secret(h, "s", refs.EnvFrom, is), secret(h, "t", refs.EnvFrom, was)})
	require.Equal(t, []string{"Secret/ns/s"}, again.Changed, "it is still due")
	require.Equal(t, waits.BaselineWhileWaiting, again.BaselineWhileWaiting, "what was noted is not noted again")
	other := judged(h, testUID, waits.BaselineWhileWaiting, []decide.Input{secret(h, "s", refs.EnvFrom, back), secret(h, "t", refs.EnvFrom, is)})
	require.Equal(t, []string{"Secret/ns/t"}, other.Changed, "what is new is not first seen when the wait is over")
}

func TestObjectThatComesBackIsComparedWithWhatTheWorkloadRuns(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	was, is := secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"}), secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "2"})
	stored := judged(h, testUID, "", []decide.Input{was}).Baseline
	stored = judged(h, testUID, stored, []decide.Input{missing(was)}).Baseline

	require.Equal(t, spec.StepNothing, judged(h, testUID, stored, []decide.Input{was}).Step)
	require.Equal(t, spec.StepRestart, judged(h, testUID, stored, []decide.Input{is}).Step)
}

func TestWhatIsGoneWhenPodsAreRestartedRestartsThemWhenItIsBack(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	gone, changes := optional(secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"})), secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "1"})
	changed := secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "2"})
	stored := judged(h, testUID, "", []decide.Input{gone, changes}).Baseline
	require.Equal(t, spec.StepNothing, judged(h, testUID, stored, []decide.Input{without(gone), changes}).Step)
	restart := judged(h, testUID, stored, []decide.Input{without(gone), changed})
	require.Equal(t, spec.StepRestart, restart.Step)

	back := judged(h, testUID, restart.Baseline, []decide.Input{gone, changed})
	require.Equal(t, spec.StepRestart, back.Step)
	require.Equal(t, []string{"Secret/ns/s"}, back.Changed)
}

func TestPodsThatCameWhileSomethingWasGoneAreRestartedWhenItIsBack(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	was := optional(secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"}))
	stored := judged(h, testUID, "", []decide.Input{was}).Baseline
	for sentence, gone := range map[string]decide.Input{"governed": without(was), "while no rule is about it": ungoverned(without(was))} {
		t.Run(sentence, func(t *testing.T) {
			gone.StartedAfterDelete = true
			noted := judged(h, testUID, stored, []decide.Input{gone})
			require.Equal(t, spec.StepAdopt, noted.Step)
			require.Equal(t, spec.StepNothing, judged(h, testUID, noted.Baseline, []decide.Input{gone}).Step)
			require.Equal(t, spec.StepRestart, judged(h, testUID, noted.Baseline, []decide.Input{was}).Step)
		})
	}
}

// The pods of that rollout may be older than what is gone is gone.
func TestWhereARolloutBroughtTheChangeWhatIsGoneStaysOnRecord(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	gone, changes := optional(secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"})), secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "1"})
	changed := secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "2"})
	stored := judged(h, testUID, "", []decide.Input{gone, changes}).Baseline
	brought := delivered(judged(h, testUID, stored, []decide.Input{without(gone), changed}))
	require.Equal(t, spec.StepNothing, judged(h, testUID, brought.Baseline, []decide.Input{gone, changed}).Step)
}

func TestPodsThatMountedAnImmutableObjectAreRestartedForTheNextDifference(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	volume := func(value string) decide.Input { return secret(h, "s", refs.Volume, reloadtest.Data{"a": value}) }
	look := func(stored string, now decide.Input) decide.Decision {
		return judged(h, testUID, stored, []decide.Input{now})
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
		return judged(h, testUID, stored, []decide.Input{now})
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
			stored := judged(h, testUID, "", []decide.Input{beside, test.before}).Baseline
			first := judged(h, testUID, stored, []decide.Input{beside, test.now})
			require.Equal(t, spec.StepRestart, first.Step)
			require.ElementsMatch(t, test.frozen, first.MayReadOld())
			require.ElementsMatch(t, test.frozen, delivered(first).MayReadOld())
			require.Equal(t, spec.StepNothing, judged(h, testUID, first.Baseline, []decide.Input{beside, test.now}).Step)
			second := judged(h, testUID, first.Baseline, []decide.Input{beside, test.next})
			require.Equal(t, spec.StepRestart, second.Step)
			require.ElementsMatch(t, test.then, second.MayReadOld())
		})
	}
}

// Before an immutable object had an id of its own, it was recorded as others are.
func TestAnImmutableVolumeOnRecordAsAnyOtherIsCompared(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	was, is := secret(h, "s", refs.Volume, reloadtest.Data{"a": "1"}), secret(h, "s", refs.Volume, reloadtest.Data{"a": "2"})
	stored := judged(h, testUID, "", []decide.Input{under(was, spec.Restart)}).Baseline
	require.Equal(t, spec.StepRestart, judged(h, testUID, stored, []decide.Input{frozen(is)}).Step)
	require.Equal(t, decide.Behind, decide.StatusOf(h, testUID, stored, decide.AsRecorded(h, testUID, stored, frozen(is))))
	same := judged(h, testUID, stored, []decide.Input{frozen(was)})
	require.Equal(t, spec.StepAdopt, same.Step)
	require.Equal(t, spec.StepRestart, judged(h, testUID, same.Baseline, []decide.Input{is}).Step)
	require.Equal(t, decide.Behind, decide.StatusOf(h, testUID, same.Baseline, decide.AsRecorded(h, testUID, same.Baseline, is)))
}

func TestBaselineThatCannotBeComparedIsAdoptedAnew(t *testing.T) {
	h, lost := reloadtest.Hasher(t, 1), reloadtest.Hasher(t, 2)
	now := []decide.Input{secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "2"})}
	ofOther := judged(lost, testUID, "", []decide.Input{secret(lost, "s", refs.EnvFrom, reloadtest.Data{"a": "1"})}).Baseline
	ofCopy := judged(h, "another-uid", "", []decide.Input{secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"})}).Baseline
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
			decision := judged(h, testUID, test.stored, now)
			require.Equal(t, spec.StepAdopt, decision.Step)
			require.Equal(t, test.reason, decision.Reason)
			require.Equal(t, test.loud, decision.LostBaseline())
			require.Equal(t, judged(h, testUID, "", now).Baseline, decision.Baseline)
		})
	}
	require.Equal(t, spec.StepNothing, judged(h, testUID, "garbage", nil).Step, "nothing governed: not ours to touch")
}

func TestTheRuleOfTheFirstChangeIsNamed(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	one, two := secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"}), secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "1"})
	two.Rule = "second"
	stored := judged(h, testUID, "", []decide.Input{one, two}).Baseline
	two.Digests = reloadtest.Digests(h, reloadtest.Data{"a": "2"})
	require.Equal(t, "second", judged(h, testUID, stored, []decide.Input{one, two}).Rule)
}

func suspended(c decide.Input) decide.Input {
	c.Action, c.SkipReason = spec.None, spec.ReasonSuspended
	return c
}

func TestASuspendedRuleCallsForNothingAndForgetsNothing(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	v1, v2 := reloadtest.Data{"a": "1"}, reloadtest.Data{"a": "2"}
	env := func(name string, content reloadtest.Data) decide.Input { return secret(h, name, refs.Env, content) }
	stored := judged(h, testUID, "", []decide.Input{env("s", v1), env("t", v1)}).Baseline
	for sentence, test := range map[string]struct {
		now    []decide.Input
		step   spec.Step
		reason spec.Reason
	}{
		"all rules are suspended, and one object changed": {[]decide.Input{suspended(env("s", v2)), suspended(env("t", v1))}, spec.StepNothing, spec.ReasonSuspended},
		"all rules are suspended, and one object is new":  {[]decide.Input{suspended(env("s", v1)), suspended(env("new", v1))}, spec.StepNothing, spec.ReasonSuspended},
		"one rule is suspended, and its object changed":   {[]decide.Input{suspended(env("s", v2)), env("t", v1)}, spec.StepNothing, spec.ReasonUnchanged},
		"one rule is suspended, and the other one's did":  {[]decide.Input{suspended(env("s", v1)), env("t", v2)}, spec.StepRestart, spec.ReasonChanged},
		"it goes on, and its object changed meanwhile":    {[]decide.Input{env("s", v2), env("t", v1)}, spec.StepRestart, spec.ReasonChanged},
	} {
		t.Run(sentence, func(t *testing.T) {
			decision := judged(h, testUID, stored, test.now)
			require.Equal(t, test.step, decision.Step)
			require.Equal(t, test.reason, decision.Reason)
		})
	}
}
