package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/gather"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// maxRestarted is how many workloads the metric of restarts has.
const maxRestarted = 20

// Restarts is a metric of the workloads that Headwater restarted most often, by what is
// recorded on them.
type Restarts struct {
	Consumers *gather.Consumers
	Now       func() time.Time
}

var restartsDesc = prometheus.NewDesc("headwater_reload_workload_restarts",
	"Restarts within the last hour, of the 20 workloads that Headwater restarted most often.", []string{"kind", "namespace", "name"}, nil)

// Describe implements prometheus.Collector.
func (Restarts) Describe(into chan<- *prometheus.Desc) { into <- restartsDesc }

// Collect implements prometheus.Collector.
func (r Restarts) Collect(into chan<- prometheus.Metric) {
	now := r.Now()
	for _, w := range mostRestarted(r.Consumers.AllWorkloads(), now) {
		into <- prometheus.MustNewConstMetric(restartsDesc, prometheus.GaugeValue, float64(restartsOf(w, now)), string(w.Kind), w.Namespace, w.Name)
	}
}

// restartsOf returns how often w was restarted within the last hour.
func restartsOf(w *workload.Workload, now time.Time) int {
	return len(mark.ParseRestarts(w.Annotations[mark.RestartedAt], w.Annotations[mark.RestartedBefore]).Since(now.Add(-mark.RestartsKept)))
}

func mostRestarted(all []*workload.Workload, now time.Time) []*workload.Workload {
	all = slices.DeleteFunc(all, func(w *workload.Workload) bool { return restartsOf(w, now) == 0 })
	slices.SortFunc(all, func(a, b *workload.Workload) int {
		return cmp.Or(cmp.Compare(restartsOf(b, now), restartsOf(a, now)), a.Key().Compare(b.Key()))
	})
	return all[:min(len(all), maxRestarted)]
}
