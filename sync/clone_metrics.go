package sync

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headwater-k8s/headwater/sync/counts"
)

// maxFailing bounds how many failing clones are named in the metrics.
const maxFailing = 100

var (
	workingDesc = prometheus.NewDesc("headwater_sync_working",
		"1 while this replica reconciles clones: it is the leader and its caches are full.", nil, nil)
	clonesDesc = prometheus.NewDesc("headwater_sync_clones",
		"Clones by state: current, behind, drifting, conflict, refused, held, fighting, failed, removing, retained.",
		[]string{"rule", "state", "reason"}, nil)
	missingDesc = prometheus.NewDesc("headwater_sync_sources_missing",
		"1 for a rule without a source, because no object has that name or those labels; else 0.",
		[]string{"rule"}, nil)
	oldestDesc = prometheus.NewDesc("headwater_sync_oldest_unsynced_seconds",
		"Seconds that the clone that has waited longest has waited for its write, as seen by this replica, by state: behind, drifting, fighting, failed, removing; 0 if none waits.",
		[]string{"rule", "state"}, nil)
	failingDesc = prometheus.NewDesc("headwater_sync_clone_failing",
		"1 for a clone whose last write failed; at most 100, those that have failed longest.",
		[]string{"rule", "kind", "namespace", "name"}, nil)
)

// cloneMetrics exports the counts of clones.
type cloneMetrics struct{ controller *controller }

// newCounter returns the counter of c. Call it before the caches run.
func newCounter(c *controller) (*counts.Counter, error) {
	counter := counts.New(counts.Params{
		Reader: c.Reader, Tracker: c.progress, Lookup: c.lookUp,
		MaxFraction: func() float64 { return c.maxFraction() }, Now: func() time.Time { return c.now() },
	})
	if err := counter.Watch(); err != nil {
		return nil, fmt.Errorf("count clones: %w", err)
	}
	return counter, nil
}

// Describe implements prometheus.Collector.
func (*cloneMetrics) Describe(out chan<- *prometheus.Desc) {
	out <- workingDesc
	out <- clonesDesc
	out <- missingDesc
	out <- oldestDesc
	out <- failingDesc
}

// Collect implements prometheus.Collector.
func (c *cloneMetrics) Collect(out chan<- prometheus.Metric) {
	var working float64
	if c.controller.working.Load() {
		working = 1
	}
	out <- prometheus.MustNewConstMetric(workingDesc, prometheus.GaugeValue, working)
	for _, clone := range c.controller.progress.LongestFailing(maxFailing) {
		out <- prometheus.MustNewConstMetric(failingDesc, prometheus.GaugeValue, 1,
			clone.Rule, string(clone.Target.Kind), clone.Target.Namespace, clone.Target.Name)
	}
	for _, rule := range c.controller.Live.Load().All() {
		var missing float64
		if c.controller.MissingSource(rule.Base) != "" {
			missing = 1
		}
		out <- prometheus.MustNewConstMetric(missingDesc, prometheus.GaugeValue, missing, rule.Name)
	}
	latest := c.controller.counts.Latest()
	for key, clones := range latest.Clones {
		out <- prometheus.MustNewConstMetric(clonesDesc, prometheus.GaugeValue, float64(clones), key.Rule, string(key.Status), string(key.Reason))
	}
	for key, age := range latest.Oldest {
		out <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, age.Seconds(), key.Rule, string(key.Status))
	}
}
