package informers

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube"
)

func TestTheLatestVersionThatACacheHasSeenIsMeasured(t *testing.T) {
	view, client := secretView(t, zap.NewNop(), keepUnmanaged, "first")
	caches := &Caches{Sources: newSources(&kube.Clients{Typed: client}, nil, zap.NewNop())}
	caches.Add(view, Always)
	registry := prometheus.NewRegistry()
	registry.MustRegister(caches)
	runView(t, view)
	changed := secretCalled("second")
	changed.ResourceVersion = "42"
	_, err := client.CoreV1().Secrets("ns").Create(t.Context(), changed, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		families, err := registry.Gather()
		if err != nil || len(families) != 1 || len(families[0].GetMetric()) != 1 {
			return false
		}
		metric := families[0].GetMetric()[0]
		return metric.GetLabel()[0].GetValue() == "secrets" && metric.GetGauge().GetValue() == 42
	}, deadline, time.Millisecond)
}
