package progress_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
)

// claimed is a place that the rule blog claims for a source of that revision.
func claimed(t *testing.T, revision string) (progress.PropagationKey, []plan.Candidate) {
	t.Helper()
	rule, source := synctest.Rule(t, nil), synctest.Source(t, nil)
	source.ResourceVersion = revision
	return progress.PropagationKey{rule.Name, source.Ref()}, []plan.Candidate{{Rule: rule, Ref: source.Ref(), Source: source}}
}

// observe records the outcome of a reconcile of target.
func observe(s *progress.Tracker, target object.Ref, candidates []plan.Candidate, wrote, failed bool, now time.Time) []progress.Arrival {
	o := progress.Outcome{State: plan.State{Target: target, Candidates: candidates}, Decision: plan.Decision{Action: plan.Leave}}
	if wrote {
		o.Decision.Action = plan.Update
	}
	if failed {
		o.Err = errors.New("no")
	}
	return s.Record(o, now)
}

func TestASpreadEndsWithItsLastClone(t *testing.T) {
	key, now7 := claimed(t, "7")
	_, now6 := claimed(t, "6")
	targets, began := synctest.Targets(0, 4), time.Unix(1000, 0)
	s := progress.NewTracker(0)
	s.BeginPropagation(key, "7", targets, began)

	first := observe(s, targets[0], now7, true, false, began.Add(time.Second))
	require.Equal(t, []progress.Arrival{{Key: key, Took: time.Second, Written: true}}, first)
	require.Empty(t, observe(s, targets[1], now6, true, false, began), "decided by an older source")
	require.Empty(t, observe(s, targets[0], now7, false, false, began), "looked at again")
	require.Len(t, observe(s, targets[1], now7, true, true, began), 1)
	require.Nil(t, observe(s, targets[2], nil, false, false, began)[0].Completed, "no longer wanted there")

	last := observe(s, targets[3], now7, false, false, began.Add(2*time.Second))
	require.False(t, last[0].Written, "it was right already")
	require.Equal(t, &progress.Propagation{Rule: "blog", Clones: 1, Failing: 1, Took: 2 * time.Second}, last[0].Completed)

	late := observe(s, targets[1], now7, true, false, began.Add(time.Minute))
	require.Equal(t, []progress.Arrival{{Key: key, Took: time.Minute, Written: true}}, late, "a failed one still arrives, and ends nothing twice")
	require.Zero(t, s.Propagations())
}

func TestANewChangeTakesTheOldOnesPlace(t *testing.T) {
	key, now7 := claimed(t, "7")
	_, now8 := claimed(t, "8")
	targets, now := synctest.Targets(0, 1), time.Unix(1000, 0)
	s := progress.NewTracker(0)
	s.BeginPropagation(key, "7", targets, now)
	s.BeginPropagation(key, "8", targets, now.Add(time.Second))
	require.Empty(t, observe(s, targets[0], now7, true, false, now))
	require.NotNil(t, observe(s, targets[0], now8, true, false, now.Add(3*time.Second))[0].Completed)
}
