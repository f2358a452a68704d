package leader

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestALeaderFlapsIfItChangesOftenInAShortTime(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for sentence, test := range map[string]struct {
		minutes  []int // since start, of each acquisition
		released bool
		want     int
	}{
		"once":                                    {[]int{0}, false, 0},
		"three times at once":                     {[]int{0, 0, 1, 2}, false, 0},
		"a fourth time":                           {[]int{0, 1, 2, 3}, false, 4},
		"a fourth time, much later":               {[]int{0, 1, 2, 40}, false, 0},
		"again and again, once an hour":           {[]int{0, 60, 120, 180, 240}, false, 0},
		"nobody holds it":                         {[]int{0, 1, 2, 3}, true, 0},
		"a replica whose clock is behind took it": {[]int{50, 51, 52, 0}, false, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			l := &Leader{}
			lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: new("web_1")}}
			for _, minute := range test.minutes {
				lease.Spec.AcquireTime = new(metav1.NewMicroTime(start.Add(time.Duration(minute)*time.Minute + time.Millisecond)))
				for range 3 { // it is renewed
					l.acquired.Store(int64(noteAcquired(lease)))
				}
			}
			if test.released {
				lease.Spec.HolderIdentity = new("")
				l.acquired.Store(int64(noteAcquired(lease)))
			}
			require.Equal(t, test.want, l.Flapping())
		})
	}
}

func TestWhatSomebodyWroteOnTheLeaseIsBounded(t *testing.T) {
	last := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: new("web_1"), AcquireTime: new(metav1.NewMicroTime(last))}}
	lease.Annotations = map[string]string{AcquiredAnnotation: "x,," + strings.Repeat(last.Add(-time.Second).Format(time.RFC3339)+",", 1000)}
	require.Equal(t, mostAcquired, noteAcquired(lease))
	require.Less(t, len(lease.Annotations[AcquiredAnnotation]), 600)
}
