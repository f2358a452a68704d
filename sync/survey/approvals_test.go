package survey_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/headwater-k8s/headwater/sync/survey"
)

func TestAnApprovalOfWhatWaitsLeavesAnEarlierOneOfRemovals(t *testing.T) {
	for sentence, test := range map[string]struct {
		later time.Duration
		want  int
	}{
		"while they are carried out": {time.Minute, 300},
		"once that one is over":      {2 * time.Hour, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			client, first := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "headwater-system", Name: "headwater-approvals"}}), time.Unix(1000, 0)
			put := func(approval survey.Approval) {
				require.NoError(t, survey.PutApproval(t.Context(), client, "headwater-system", "blog", approval))
			}
			put(survey.Approval{At: first, By: "ann", Removals: 300})
			put(survey.Approval{At: first.Add(test.later), By: "ann", Waiting: true})
			var stored survey.Approval
			require.NoError(t, survey.ChangeApproval(t.Context(), client, "headwater-system", "blog", func(a survey.Approval) survey.Approval {
				stored = a
				return a
			}))
			require.Equal(t, test.want, stored.Removals)
			require.True(t, stored.Waiting)
		})
	}
}
