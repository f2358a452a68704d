package progress_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/survey"
)

func TestNoTimeIsKeptOfWhatIsRight(t *testing.T) {
	tracker, now, target := progress.NewTracker(0), time.Unix(1000, 0), synctest.Targets(0, 2)
	behind := func(target object.Ref) survey.CloneStatus {
		return survey.CloneStatus{Rule: "blog", Target: target, Status: survey.Behind, Decision: plan.Decision{Action: plan.Update}}
	}
	since := func(after time.Duration, target object.Ref) time.Duration {
		return now.Add(after).Sub(tracker.DueSince(behind(target), now.Add(after)))
	}
	require.Zero(t, since(0, target[0]))
	require.Zero(t, since(0, target[1]))
	require.Equal(t, time.Second, since(time.Second, target[0]))
	require.Equal(t, time.Minute, since(time.Minute, target[0]), "it waits since the first call")
	tracker.NotDue(target[1])
	require.Zero(t, since(time.Hour, target[1]), "it was right in between")
	tracker.Record(progress.Outcome{State: plan.State{Target: target[0]}}, now)
	require.Zero(t, since(2*time.Hour, target[0]), "nothing is kept of a clone that was written")
}
