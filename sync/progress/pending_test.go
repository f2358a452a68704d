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
	tracker, now, target := progress.NewTracker(), time.Unix(1000, 0), synctest.Targets(0, 2)
	behind := func(target object.Ref) survey.CloneStatus {
		return survey.CloneStatus{Rule: "blog", Target: target, Status: survey.Behind, Decision: plan.Decision{Action: plan.Update}}
	}
	oldest := func(after time.Duration, found ...survey.CloneStatus) time.Duration {
		s := tracker.BeginSurvey([]string{"blog"}, now.Add(after))
		for _, f := range found {
			s.Add(f, f.Rule)
		}
		return s.End()[progress.PendingKey{"blog", survey.Behind}]
	}
	require.Zero(t, oldest(0, behind(target[0]), behind(target[1])))
	require.Equal(t, time.Second, oldest(time.Second, behind(target[0])))
	require.Equal(t, time.Minute, oldest(time.Minute, behind(target[0])), "it waits since the first survey")
	require.Zero(t, oldest(time.Hour, behind(target[1])), "it was right in between")
	require.Zero(t, oldest(2*time.Hour, behind(target[0])), "nothing is kept of a clone that is right")
}
