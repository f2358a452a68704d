package progress_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/survey"
)

func TestFiguresOfAPropagationAreReadFromAnnotations(t *testing.T) {
	want := progress.Propagation{Rule: "blog", Clones: 1000, Failing: 3, Took: 61500 * time.Millisecond}
	got, ok := progress.PropagationOf(want.Annotations())
	require.True(t, ok)
	require.Equal(t, want, got)
	for key := range want.Annotations() {
		t.Run("without "+key, func(t *testing.T) {
			incomplete := want.Annotations()
			maps.DeleteFunc(incomplete, func(k, _ string) bool { return k == key })
			_, ok := progress.PropagationOf(incomplete)
			require.False(t, ok)
		})
	}
}

func TestAPropagationIsASentenceWithTheRightPlural(t *testing.T) {
	for want, p := range map[string]progress.Propagation{
		`rule "blog": 1 clone written in 1s`:             {Rule: "blog", Clones: 1, Took: time.Second},
		`rule "blog": 2 clones written in 1s, 1 failing`: {Rule: "blog", Clones: 2, Failing: 1, Took: time.Second},
	} {
		require.Equal(t, want, p.String())
	}
}

func TestAFailureIsReadFromAnnotations(t *testing.T) {
	require.Equal(t, "exceeded quota; retrying with backoff", progress.FailureOf(map[string]string{progress.EventError: "exceeded quota"}))
	require.Empty(t, progress.FailureOf(nil))
}

func TestAnApprovalIsAPlainSentence(t *testing.T) {
	at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	require.Equal(t, `approved at 2026-05-04T03:02:01Z by user "admin" (name not verified)`, survey.Approval{At: at, By: "admin"}.String())
	require.Equal(t, "approved at 2026-05-04T03:02:01Z by an unnamed user", survey.Approval{At: at}.String())
}
