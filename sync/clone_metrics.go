package sync

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/survey"
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

const (
	// surveyRatio bounds the cost of scrapes: a snapshot is reused for this many
	// times as long as its survey took, at most for snapshotMaxAge.
	surveyRatio    = 10
	snapshotMaxAge = 10 * time.Second
)

// cloneMetrics counts clones by surveying the caches, so that no counters have to
// be maintained. Scrapes in short succession, and the page, share one survey.
type cloneMetrics struct {
	controller *controller
	snapshots  snapshots
}

// statusKey groups the clones that are counted together.
type statusKey struct {
	rule   string
	status survey.Status
	reason plan.Reason
}

func newCloneMetrics(c *controller) *cloneMetrics { return &cloneMetrics{controller: c} }

// take surveys everything, passes each CloneStatus to report, and stores the
// snapshot.
func (c *cloneMetrics) take(report func(survey.CloneStatus)) {
	c.snapshots.store(c.survey(report))
}

// latest returns the stored snapshot, or a new one if that expired.
func (c *cloneMetrics) latest() *snapshot {
	return c.snapshots.load(c.controller.now(), func() *snapshot { return c.survey(func(survey.CloneStatus) {}) })
}

func (c *cloneMetrics) survey(report func(survey.CloneStatus)) *snapshot {
	began, clones := c.controller.now(), map[statusKey]int{}
	oldest := c.controller.survey(func(f survey.CloneStatus) {
		clones[statusKey{c.controller.RuleLabel(f.Rule), f.Status, f.Decision.Reason}]++
		report(f)
	})
	ended := c.controller.now()
	return &snapshot{clones, oldest, ended.Add(min(surveyRatio*ended.Sub(began), snapshotMaxAge))}
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
	latest := c.latest()
	for g, clones := range latest.clones {
		out <- prometheus.MustNewConstMetric(clonesDesc, prometheus.GaugeValue, float64(clones), g.rule, string(g.status), string(g.reason))
	}
	for key, age := range latest.oldest {
		out <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, age.Seconds(), key.Rule, string(key.Status))
	}
}

// survey is Reader.Survey with what this process remembers of clones. It returns the
// longest waiting time of due writes per rule and status.
func (c *controller) survey(report func(survey.CloneStatus)) progress.OldestPending {
	pending := c.progress.BeginSurvey(c.RuleNames(), c.now())
	c.Survey(c.maxFraction(), c.lookUp, func(f survey.CloneStatus) { report(pending.Add(f, c.RuleLabel(f.Rule))) })
	return pending.End()
}
