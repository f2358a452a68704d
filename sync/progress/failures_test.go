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

func TestTheLongestFailuresAreNamedFirst(t *testing.T) {
	now, targets, tracker := time.Unix(1000, 0), synctest.Targets(0, 3), progress.NewTracker(0)
	record := func(target object.Ref, err error, after time.Duration) {
		tracker.Record(progress.Outcome{State: plan.State{Target: target}, Rule: "blog", Err: err}, now.Add(after))
	}
	record(targets[2], errors.New("quota"), 0)
	record(targets[0], errors.New("quota"), time.Second)
	record(targets[1], errors.New("quota"), time.Second)
	record(targets[2], errors.New("quota again"), time.Minute)
	require.Equal(t, []progress.FailingClone{{targets[2], "blog"}}, tracker.LongestFailing(1))
	require.Len(t, tracker.LongestFailing(9), 3)
	record(targets[2], nil, time.Minute)
	require.Equal(t, []progress.FailingClone{{targets[0], "blog"}, {targets[1], "blog"}}, tracker.LongestFailing(9), "a write that succeeded ends the failure")
}
