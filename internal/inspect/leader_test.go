package inspect

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube/leader"
)

func TestWhoLeadsIsReadFromTheLease(t *testing.T) {
	now := time.Unix(1e9, 0)
	for sentence, test := range map[string]struct {
		holder string
		age    time.Duration
		lasts  int32 // seconds; by default those of the default lease
		// recorded is how long ago the API server recorded a renewal; nil if it says nothing.
		recorded *time.Duration
		leads    bool
		unknown  bool
	}{
		"it is held":                                     {holder: "pod_1", age: time.Second, leads: true},
		"it is held by a clock that runs ahead":          {holder: "pod_1", age: -time.Hour, recorded: new(time.Second), leads: true},
		"it is held by a clock that lags":                {holder: "pod_1", age: 30 * time.Second, leads: true},
		"it is held by a clock that lags by an hour":     {holder: "pod_1", age: time.Hour, recorded: new(time.Second), leads: true},
		"it was left by one that was killed":             {holder: "pod_1", age: 31 * time.Second},
		"it was left by one whose clock ran ahead":       {holder: "pod_1", age: -time.Hour, recorded: new(31 * time.Second)},
		"only a clock that runs far ahead says anything": {holder: "pod_1", age: -time.Hour, unknown: true},
		"it was short, and left by one that was killed":  {holder: "pod_1", age: 11 * time.Second, lasts: 5},
		"it was given back":                              {age: time.Second},
	} {
		t.Run(sentence, func(t *testing.T) {
			renewed := metav1.NewMicroTime(now.Add(-test.age))
			spec := coordinationv1.LeaseSpec{HolderIdentity: &test.holder, RenewTime: &renewed}
			if test.lasts > 0 {
				spec.LeaseDurationSeconds = &test.lasts
			}
			lease := &coordinationv1.Lease{Spec: spec}
			if test.recorded != nil {
				at := metav1.NewTime(now.Add(-*test.recorded))
				lease.ManagedFields = []metav1.ManagedFieldsEntry{
					{Time: &at, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:renewTime":{}}}`)},
					{Time: new(metav1.NewTime(now)), FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{}}}`)},
				}
				renewed = metav1.NewMicroTime(at.Time)
			}
			got := LeadershipOf(lease, now)
			require.Equal(t, test.leads, got.Leads)
			if test.unknown {
				require.Nil(t, got.Until)
			} else if !test.leads {
				require.Equal(t, renewed.Time, *got.Until)
			}
		})
	}
	require.False(t, LeadershipOf(&coordinationv1.Lease{}, now).Leads, "nobody ever led")
	doubting := LeadershipOf(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{leader.DoubtAnnotation: "RuleStatuses cannot be written"}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("pod_1"), RenewTime: new(metav1.NewMicroTime(now))},
	}, now)
	require.Equal(t, []string{"RuleStatuses cannot be written"}, Confirmation{Leader: &doubting}.Attention())
}
