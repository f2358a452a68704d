package progress_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/survey"
)

func TestAPropagationIsASentenceWithTheRightPlural(t *testing.T) {
	for want, p := range map[string]progress.Propagation{
		`rule "blog": 1 clone written in 1s`:             {Rule: "blog", Clones: 1, Took: time.Second},
		`rule "blog": 2 clones written in 1s, 1 failing`: {Rule: "blog", Clones: 2, Failing: 1, Took: time.Second},
	} {
		require.Equal(t, want, p.String())
	}
}

func TestAnApprovalIsAPlainSentence(t *testing.T) {
	at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	require.Equal(t, `approved at 2026-05-04T03:02:01Z by user "admin" (name not verified)`, survey.Approval{At: at, By: "admin"}.String())
	require.Equal(t, "approved at 2026-05-04T03:02:01Z by an unnamed user", survey.Approval{At: at}.String())
}
