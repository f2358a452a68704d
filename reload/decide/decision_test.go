package decide

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
)

func TestWhatIsStampedAboveKeepsNoBaseline(t *testing.T) {
	require.Equal(t, Decision{Step: spec.StepNothing, Reason: spec.ReasonOwned}, DelegateToOwner(""))
	require.Equal(t, Decision{Step: spec.StepAdopt, Reason: spec.ReasonOwned}, DelegateToOwner("v1:…"), "an empty baseline is stored")
}

func TestOnlyWhatSomebodyWantsCausesAnything(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	s, other := secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "1"}), secret(h, "t", refs.EnvFrom, reloadtest.Data{"a": "1"}).ungoverned()
	stored := Workload(h, testUID, "", []Input{s, s, other}).Baseline
	changed := secret(h, "s", refs.EnvFrom, reloadtest.Data{"a": "2"})
	of := []Cause{{s.Object, "r"}}
	require.Equal(t, of, Workload(h, testUID, stored, []Input{changed, changed, other}).Causes)
	held := Workload(h, testUID, stored, []Input{changed, other.missing()})
	require.Equal(t, spec.StepHold, held.Step)
	require.Equal(t, of, held.Causes, "the change that is held")
	held = Workload(h, testUID, stored, []Input{s.missing(), other})
	require.Equal(t, spec.StepHold, held.Step)
	require.Equal(t, of, held.Causes, "what is missing")
	require.Empty(t, Workload(h, testUID, stored, []Input{s, other}).Causes)
}
