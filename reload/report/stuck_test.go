package report

import (
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/health"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/track"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func TestManyStuckWorkloadsAreOneNote(t *testing.T) {
	m := NewMetrics(prometheus.NewRegistry())
	rollouts, cause := NewRollouts(&Reporter{Metrics: m}, nil), decide.Cause{Rule: "r"}
	watch := rollouts.Watch
	for i := range 100 {
		w := &workload.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w" + strconv.Itoa(1000+i)}, Kind: kinds.KindDeployment}
		watch.Begin(w, reloadtest.Birth, "r", []decide.Cause{cause})
	}
	stick := func(health health.RolloutHealth, now time.Time) {
		for k, one := range watch.Take(now) {
			one.Health = health
			watch.Judged(k, one, now)
		}
	}
	crash := health.RolloutHealth{Health: health.Stuck, Reason: workload.StuckCrashing}
	stick(crash, reloadtest.Birth)
	require.Empty(t, rollouts.notes(reloadtest.Birth), "others may follow")
	now := reloadtest.Birth.Add(summaryQuiet)
	require.Equal(t, map[decide.Cause]string{cause: "100 workloads that were restarted for it do not complete their rollouts: " +
		"Deployment/ns/w1000, Deployment/ns/w1001 and 98 more. Of the first, its new pods fail (CrashLoopBackOff)"}, rollouts.notes(now))
	stands := track.Stuck{Workloads: []kinds.Key{{Kind: kinds.KindStatefulSet, Namespace: "ns", Name: "db"}}, Reason: workload.StuckStanding, Pod: "db-0"}
	require.Contains(t, stuckNote(stands), "StatefulSet/ns/db. Of the first, the StatefulSet waits for a pod of an older template that is not ready (Standing). Delete its pod db-0")
	watch.Forget(reloadtest.InNamespace("ns", "w1000"))
	require.Empty(t, rollouts.notes(now.Add(summaryMaxDelay-1)), "no more often than that")
	require.Contains(t, rollouts.notes(now.Add(summaryMaxDelay))[cause], "99 workloads")
	require.Empty(t, rollouts.notes(now.Add(2*summaryMaxDelay)), "nothing has changed")
	for i := range 100 {
		watch.Changed(reloadtest.InNamespace("ns", "w"+strconv.Itoa(1000+i)))
	}
	stick(health.RolloutHealth{Health: health.Healthy}, now)
	require.Empty(t, rollouts.notes(now.Add(time.Hour)), "it is over")
	require.Empty(t, rollouts.reported)
}
