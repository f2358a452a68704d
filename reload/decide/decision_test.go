package decide_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func TestWhatIsStampedAboveKeepsNoBaseline(t *testing.T) {
	for stored, want := range map[string]spec.Step{"": spec.StepNothing, "v1:…": spec.StepAdopt} {
		owned := stateOf(reloadtest.Hasher(t, 1), testUID, stored, nil)
		owned.Owner.Root = &workload.Workload{}
		require.Equal(t, decide.Decision{Step: want, Reason: spec.ReasonOwned}, decide.Workload(owned), "an empty baseline is stored")
		owned.Owner.NotSynced = true
		require.Equal(t, decide.Decision{Step: spec.StepNothing, Reason: spec.ReasonUnread, Incomplete: true}, decide.Workload(owned))
	}
}

// What a decision once changed after it was made, it now says itself.
func TestADecisionSaysWhatIsWrittenNow(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	of := func(value string) []decide.Input {
		return []decide.Input{secret(h, "s", refs.Env, reloadtest.Data{"k": value}, "k")}
	}
	stored := judged(h, testUID, "", of("1")).Baseline
	changed := judged(h, testUID, stored, of("2")).Baseline
	for sentence, test := range map[string]struct {
		value  string
		edit   func(s *decide.State)
		step   spec.Step
		reason spec.Reason
		wait   decide.WaitReason
		writes spec.Step
	}{
		"nothing changed": {"1", func(*decide.State) {}, spec.StepNothing, spec.ReasonUnchanged, "", ""},
		"a change":        {"2", func(*decide.State) {}, spec.StepRestart, spec.ReasonChanged, "", spec.StepRestart},
		"a change that others may follow": {
			"2", func(s *decide.State) { s.Known.Debounced = s.Now.Add(1) }, spec.StepRestart, spec.ReasonChanged, "", "",
		},
		"a change while other rollouts take all room": {
			"2", func(s *decide.State) { s.Full, s.Rollout = true, &workload.Rollout{Replicas: 1} }, spec.StepRestart, spec.ReasonChanged, decide.WaitRollouts, "",
		},
		"a change, which needs no room": {"2", func(s *decide.State) { s.Full = true }, spec.StepRestart, spec.ReasonChanged, "", spec.StepRestart},
		"a change of what runs to completion needs none either": {
			"2", func(s *decide.State) {
				s.Workload.Kind, s.Full, s.Known.Restarts = kinds.KindCronJob, true, mark.Restarts{s.Now}
			}, spec.StepRestart, spec.ReasonChanged, "", spec.StepRestart,
		},
		"somebody took the baseline off": {"1", func(s *decide.State) { s.Known.Baseline = "" }, spec.StepAdopt, spec.ReasonStripped, "", spec.StepAdopt},
		"its owner took the baseline off": {
			"1", func(s *decide.State) { s.Known.Baseline, s.Workload.Owner = "", &workload.Owner{} }, spec.StepNothing, spec.ReasonUnchanged, "", "",
		},
		"somebody took the stamp off": {
			"1", func(s *decide.State) {
				s.Workload.Rollout, s.Known.Restarts = &workload.Rollout{}, mark.Restarts{reloadtest.Birth}
			},
			spec.StepAdopt, spec.ReasonStripped, "", spec.StepAdopt,
		},
		"nobody knows yet whether somebody took the stamp off": {
			"1", func(s *decide.State) {
				s.Workload.Rollout, s.Known.Restarts, s.Known.Pending = &workload.Rollout{}, mark.Restarts{reloadtest.Birth}, true
			}, spec.StepNothing, spec.ReasonUnchanged, "", "",
		},
		"somebody took a restart back, which waits": {
			"2", func(s *decide.State) {
				s.Known.Record = decide.Record{Baseline: changed, Stamp: 7, Replaced: replaced(stored, h, of("1")[0])}
				s.Known.Restarts = mark.Restarts{s.Now}
			}, spec.StepRestart, spec.ReasonChanged, decide.WaitInterval, spec.StepAdopt,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := stateOf(h, testUID, stored, of(test.value))
			s.Now = reloadtest.Birth.Add(1)
			test.edit(&s)
			d := decide.Workload(s)
			require.Equal(t, test.step, d.Step)
			require.Equal(t, test.reason, d.Reason)
			require.Equal(t, test.wait, d.Wait.Reason)
			now, writes := d.Now()
			require.Equal(t, test.writes != "", writes)
			if writes {
				require.Equal(t, test.writes, now.Step)
			}
		})
	}
}

// replaced are the checksums of one in a stored baseline.
func replaced(stored string, h *digest.Hasher, one decide.Input) map[decide.EntryID]decide.EntrySum {
	is := stateOf(h, testUID, stored, nil)
	d := judged(h, testUID, stored, []decide.Input{func() decide.Input { one.Digests = nil; return one }()})
	return is.Restarted(d, nil, 1).Replaced
}

func TestOnlyWhatSomebodyWantsCausesAnything(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	s, other := secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"}), ungoverned(secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "1"}))
	stored := judged(h, testUID, "", []decide.Input{s, s, other}).Baseline
	changed := secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "2"})
	of := []decide.Cause{{s.Object, "r"}}
	require.Equal(t, of, judged(h, testUID, stored, []decide.Input{changed, changed, other}).Causes)
	held := judged(h, testUID, stored, []decide.Input{changed, missing(other)})
	require.Equal(t, spec.StepHold, held.Step)
	require.Equal(t, of, held.Causes, "the change that is held")
	held = judged(h, testUID, stored, []decide.Input{missing(s), other})
	require.Equal(t, spec.StepHold, held.Step)
	require.Equal(t, of, held.Causes, "what is missing")
	require.Empty(t, judged(h, testUID, stored, []decide.Input{s, other}).Causes)
}
