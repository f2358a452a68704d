package inspect

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhoLeadsIsReadFromTheLease(t *testing.T) {
	now := time.Unix(1e9, 0)
	for sentence, test := range map[string]struct {
		holder string
		age    time.Duration
		lasts  int32 // seconds; by default those of the default lease
		leads  bool
	}{
		"it is held":                                    {holder: "pod_1", age: time.Second, leads: true},
		"it is held by a clock that runs ahead":         {holder: "pod_1", age: -time.Hour, leads: true},
		"it is held by a clock that lags":               {holder: "pod_1", age: 50 * time.Second, leads: true},
		"it was left by one that was killed":            {holder: "pod_1", age: 2 * time.Minute},
		"it was short, and left by one that was killed": {holder: "pod_1", age: 70 * time.Second, lasts: 5},
		"it was given back":                             {age: time.Second},
	} {
		t.Run(sentence, func(t *testing.T) {
			renewed := metav1.NewMicroTime(now.Add(-test.age))
			spec := coordinationv1.LeaseSpec{HolderIdentity: &test.holder, RenewTime: &renewed}
			if test.lasts > 0 {
				spec.LeaseDurationSeconds = &test.lasts
			}
			got := LeadershipOf(&coordinationv1.Lease{Spec: spec}, now)
			require.Equal(t, test.leads, got.Leads)
			if !test.leads {
				require.Equal(t, renewed.Time, *got.Until)
			}
		})
	}
	require.False(t, LeadershipOf(&coordinationv1.Lease{}, now).Leads, "nobody ever led")
}
