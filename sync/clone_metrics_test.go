package sync

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/board"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/survey"
)

func TestACensusIsKeptForAsLongAsItWasDear(t *testing.T) {
	for sentence, test := range map[string]struct {
		step time.Duration // of the clock, each of the times that a count reads it
		kept time.Duration
	}{
		"one that took a while for ten times that":        {100 * time.Millisecond, time.Second},
		"one that took long for no more than ten seconds": {time.Minute, 10 * time.Second},
		"one that took no time not at all":                {0, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			v := viewOf(t, 5, *synctest.Rule(t, nil))
			now, decision := time.Unix(5000, 0), test.step
			v.controller.now = func() time.Time { now = now.Add(decision); return now }
			failing := func() int {
				clones, _ := v.Counts()
				return clones[board.Key{Rule: "blog", Status: survey.Failed, Reason: plan.Missing}]
			}
			require.Zero(t, failing())
			target := object.Ref{Kind: object.Secret, Namespace: "team-3", Name: "blogsecret"}
			decision = 0
			fail(v.controller, target, errors.New("quota"), now)
			if test.kept > 0 {
				now = now.Add(test.kept - 1)
				require.Zero(t, failing(), "it is kept")
				now = now.Add(1)
			}
			require.Equal(t, 1, failing(), "what changed is counted again")
		})
	}
}
