package decide_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
)

func TestWhatIsStampedAboveKeepsNoBaseline(t *testing.T) {
	require.Equal(t, decide.Decision{Step: spec.StepNothing, Reason: spec.ReasonOwned}, decide.DelegateToOwner(""))
	require.Equal(t, decide.Decision{Step: spec.StepAdopt, Reason: spec.ReasonOwned}, decide.DelegateToOwner("v1:…"), "an empty baseline is stored")
}

func TestOnlyWhatSomebodyWantsCausesAnything(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	s, other := secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"}), ungoverned(secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "1"}))
	stored := decide.Workload(h, testUID, "", []decide.Input{s, s, other}).Baseline
	changed := secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "2"})
	of := []decide.Cause{{s.Object, "r"}}
	require.Equal(t, of, decide.Workload(h, testUID, stored, []decide.Input{changed, changed, other}).Causes)
	held := decide.Workload(h, testUID, stored, []decide.Input{changed, missing(other)})
	require.Equal(t, spec.StepHold, held.Step)
	require.Equal(t, of, held.Causes, "the change that is held")
	held = decide.Workload(h, testUID, stored, []decide.Input{missing(s), other})
	require.Equal(t, spec.StepHold, held.Step)
	require.Equal(t, of, held.Causes, "what is missing")
	require.Empty(t, decide.Workload(h, testUID, stored, []decide.Input{s, other}).Causes)
}
