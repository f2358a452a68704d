package report

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func TestTheWorkloadsThatAreRestartedMostOftenAreShown(t *testing.T) {
	var all []*workload.Workload
	for i := range 2 * maxRestarted {
		var restarts mark.Restarts
		for n := range i {
			restarts = restarts.With(reloadtest.Birth.Add(time.Duration(n) * time.Minute))
		}
		at, before := restarts.Format()
		all = append(all, &workload.Workload{Kind: kinds.KindDeployment, ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: fmt.Sprint("w", i), Annotations: map[string]string{mark.RestartedAt: at, mark.RestartedBefore: before},
		}})
	}
	found := mostRestarted(slices.Clone(all), reloadtest.Birth.Add(40*time.Minute))
	require.Len(t, found, maxRestarted)
	require.Equal(t, "w39", found[0].Name)
	require.Equal(t, 39, restartsOf(found[0], reloadtest.Birth.Add(40*time.Minute)))
	require.Equal(t, "w20", found[maxRestarted-1].Name)
	require.Empty(t, mostRestarted(found, reloadtest.Birth.Add(2*time.Hour)), "none within the last hour")
}
