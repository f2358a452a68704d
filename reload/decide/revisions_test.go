package decide_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func TestAStampShowsWhatAPodStartedWith(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	v1, v2 := reloadtest.Data{"a": "1", "b": "1"}, reloadtest.Data{"a": "2", "b": "1"}
	env := secret(h, "s", refs.Env, v1, "a")
	stamp := judged(h, testUID, "", []decide.Input{env}).Baseline
	for sentence, test := range map[string]struct {
		stamp string
		now   decide.Input
		want  bool
	}{
		"the data has not changed since":    {stamp, env, true},
		"it has changed":                    {stamp, secret(h, "s", refs.Env, v2, "a"), false},
		"a key that it does not read has":   {stamp, secret(h, "s", refs.Env, reloadtest.Data{"a": "1", "b": "2"}, "a"), true},
		"there is no stamp":                 {"", env, false},
		"it is of another reference":        {stamp, secret(h, "t", refs.Env, v1, "a"), false},
		"it was made with another key":      {judged(reloadtest.Hasher(t, 2), testUID, "", []decide.Input{env}).Baseline, env, false},
		"it was copied from other workload": {judged(h, "other", "", []decide.Input{env}).Baseline, env, false},
	} {
		t.Run(sentence, func(t *testing.T) { require.Equal(t, test.want, decide.Carries(h, testUID, test.stamp, test.now)) })
	}
}

func TestVolumesShowARevisionOnceThatIsConfirmed(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	written := reloadtest.Birth.Add(time.Hour)
	volume := changedAt(secret(h, "s", refs.Volume, reloadtest.Data{"a": "1"}), written)
	pod := reloadtest.Pod(func(*workload.Pod) {})
	recorded := decide.Pod(h, pod, "", []decide.Input{volume}, written).Baseline
	other := decide.Pod(h, pod, "", []decide.Input{changedAt(secret(h, "s", refs.Volume, reloadtest.Data{"a": "2"}), written)}, written).Baseline
	for sentence, test := range map[string]struct {
		stored    string
		confirmed *string
		after     time.Duration
		synced    bool
		want      bool
	}{
		"nothing is recorded":                              {"", new(""), time.Second, false, false},
		"it was refreshed":                                 {recorded, new(""), time.Second, false, false},
		"it was refreshed and confirmed":                   {recorded, new(recorded), time.Second, false, true},
		"it was refreshed, and nobody confirms":            {recorded, nil, time.Second, false, true},
		"nothing is recorded, and this clock may be ahead": {"", new(""), decide.KubeletSync + time.Second, false, false},
		"nothing is recorded, and all kubelets saw":        {"", new(""), decide.KubeletSync + time.Second, true, true},
		"it was refreshed to something else":               {other, new(other), decide.KubeletSync + time.Second, true, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			require.Equal(t, test.want, decide.Shows(h, pod, test.stored, test.confirmed, volume, test.synced))
		})
	}
}

// Invariant D2: a rollback waits for no pace.
func TestARestartThatTakesARevisionBackIsUrgent(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	good, bad, other := reloadtest.Data{"a": "good", "b": "1"}, reloadtest.Data{"a": "bad", "b": "1"}, reloadtest.Data{"a": "good", "b": "2"}
	now := reloadtest.Birth.Add(time.Hour)
	ran := func(data reloadtest.Data) string {
		return judged(h, testUID, "", []decide.Input{secret(h, "s", refs.Env, data, "a")}).Baseline
	}
	undelivered := func(all ...reloadtest.Data) (digests []object.Digests) {
		for _, data := range all {
			digests = append(digests, reloadtest.Digests(h, data))
		}
		return digests
	}
	for sentence, test := range map[string]struct {
		ran, now    reloadtest.Data
		undelivered []object.Digests
		step        spec.Step
		urgent      bool
	}{
		"it runs what was not delivered":             {bad, good, undelivered(bad), spec.StepRestart, true},
		"it runs another key of it":                  {good, good, undelivered(other), spec.StepNothing, false},
		"it runs what was delivered":                 {good, bad, nil, spec.StepRestart, false},
		"it runs what nobody knows":                  {reloadtest.Data{"a": "?"}, good, undelivered(bad), spec.StepRestart, false},
		"it runs one of several":                     {bad, good, undelivered(other, bad), spec.StepRestart, true},
		"what it gets was not delivered, either way": {bad, reloadtest.Data{"a": "fix"}, nil, spec.StepRestart, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			input := secret(h, "s", refs.Env, test.now, "a")
			input.Undelivered = test.undelivered
			d := judged(h, testUID, ran(test.ran), []decide.Input{input})
			require.Equal(t, test.step, d.Step)
			require.Equal(t, test.urgent, d.IsUrgent())
			d.Pace = spec.Pace{Interval: time.Hour}
			state := stateOf(h, testUID, "", nil)
			state.Known.Restarts, state.Now = mark.Restarts{now}, now
			if test.step == spec.StepRestart {
				require.Equal(t, test.urgent, !decide.Start(state, d).Waits())
			}
			d.Undone = decide.UndoneStripped
			require.False(t, d.IsUrgent(), "somebody reverts it")
		})
	}
}

func TestWhatOnlyTheNodeReadsHasNoReader(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	data := reloadtest.Data{"a": "1"}
	env, pull := secret(h, "s", refs.Env, data, "a"), secret(h, "s", refs.ImagePull, data)
	require.True(t, env.Reads(nil))
	require.True(t, env.Reads([]string{"a", "b"}))
	require.False(t, env.Reads([]string{"b"}))
	require.False(t, env.Reads([]string{}))
	require.True(t, secret(h, "s", refs.Volume, data).Reads([]string{"b"}), "it reads all keys")
	require.False(t, pull.Reads(nil))
}
