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

func TestANameThatWasForeignStaysFree(t *testing.T) {
	target, start := synctest.Targets(0, 1)[0], time.Unix(1_800_000_000, 0)
	wanted := []plan.Candidate{{}}
	state, create := plan.State{Target: target, Candidates: wanted}, plan.Decision{Action: plan.Create, Reason: plan.Missing}
	foreign, conflict := plan.State{Target: target, Candidates: wanted, Taken: true}, plan.Decision{Action: plan.Refuse, Reason: plan.Conflict}
	lost := plan.State{Target: target, Candidates: wanted, Taken: true, MadeByUs: true}
	clone, current := plan.State{Target: target, Candidates: wanted, Clone: &object.Digested{}}, plan.Decision{Action: plan.Leave, Reason: plan.InSync}
	unwanted, nothing := plan.State{Target: target}, plan.Decision{Action: plan.Leave, Reason: plan.NamespaceGone}
	held, takenOver := plan.Decision{Action: plan.Hold, Reason: plan.SourceEmptied}, plan.Decision{Action: plan.Recreate, Reason: plan.TakenOver}
	type look struct {
		after    time.Duration
		state    plan.State
		decision plan.Decision
	}
	for sentence, test := range map[string]struct {
		before []look
		at     time.Duration
		want   plan.Reason
	}{
		"nobody had it":                       {nil, 0, plan.Missing},
		"an object of others had it":          {[]look{{0, foreign, conflict}}, time.Second, plan.NameFree},
		"it was gone for a moment":            {[]look{{0, foreign, conflict}, {time.Second, state, create}}, 30 * time.Second, plan.NameFree},
		"it was gone for long enough":         {[]look{{0, foreign, conflict}, {time.Second, state, create}}, 31 * time.Second, plan.Missing},
		"somebody took it again":              {[]look{{0, foreign, conflict}, {1, state, create}, {time.Minute, foreign, conflict}}, 2 * time.Minute, plan.NameFree},
		"it was a clone that lost its marks":  {[]look{{0, lost, conflict}}, time.Second, plan.Missing},
		"it became a clone":                   {[]look{{0, foreign, conflict}, {1, clone, current}}, time.Second, plan.Missing},
		"nothing was wanted there in between": {[]look{{0, foreign, conflict}, {1, unwanted, nothing}}, time.Second, plan.Missing},
		"it went while nothing was written":   {[]look{{0, foreign, conflict}, {1, state, held}}, time.Minute, plan.Missing},
		"Headwater deleted it to take over":   {[]look{{0, foreign, conflict}, {1, foreign, takenOver}}, time.Second, plan.Missing},
	} {
		t.Run(sentence, func(t *testing.T) {
			tracker := progress.NewTracker(30 * time.Second)
			for _, one := range test.before {
				tracker.LeaveName(one.state, one.decision, start.Add(one.after))
			}
			got := tracker.LeaveName(state, create, start.Add(test.at))
			require.Equal(t, test.want, got.Reason)
			marked := tracker.Mark(survey.CloneStatus{Target: target, Status: survey.Behind, Decision: create}, start.Add(test.at))
			require.Equal(t, test.want, marked.Decision.Reason)
			require.Equal(t, test.want == plan.NameFree, !got.Until.IsZero())
			if test.want == plan.NameFree {
				require.Equal(t, plan.Missing, tracker.LeaveName(state, create, got.Until).Reason)
				require.NotZero(t, tracker.TakeName(target))
			}
			tracker.TakeName(target)
			require.Equal(t, plan.Missing, tracker.LeaveName(state, create, start).Reason, "the clone was created")
		})
	}
}
