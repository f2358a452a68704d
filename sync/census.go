package sync

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headwater-k8s/headwater/internal/locked"
)

// maxFailing bounds how many failing clones are named in the metrics.
const maxFailing = 100

var (
	workingDesc = prometheus.NewDesc("headwater_sync_working",
		"1 while this replica keeps clones right: it leads, and has read everything.", nil, nil)
	clonesDesc = prometheus.NewDesc("headwater_sync_clones",
		"Clones by standing: current, behind, drifting, conflict, refused, held, fighting, failed, removing, retained.",
		[]string{"rule", "state", "reason"}, nil)
	missingDesc = prometheus.NewDesc("headwater_sync_sources_missing",
		"1 for a rule that has no source, since there is none of that name or with such labels; else 0.",
		[]string{"rule"}, nil)
	oldestDesc = prometheus.NewDesc("headwater_sync_oldest_unsynced_seconds",
		"How long the clone has waited for its write that has waited longest, as this replica saw it, by state: behind, drifting, fighting, failed, removing; 0 where none waits.",
		[]string{"rule", "state"}, nil)
	failingDesc = prometheus.NewDesc("headwater_sync_clone_failing",
		"1 for a clone whose last write failed; at most 100, those that failed longest.",
		[]string{"rule", "kind", "namespace", "name"}, nil)
)

const (
	// surveyShare bounds what scrapes cost: after a survey that took long, its
	// census is kept for this many times as long, up to censusKept.
	surveyShare = 10
	censusKept  = 10 * time.Second
)

// census counts the clones from the caches alone, so that no state has to be
// kept beside them but of clones that wait. Scrapes that come close together,
// and the page, share one survey.
type census struct {
	controller *controller
	kept       *locked.Value[*count]
}

// count is what came of a survey.
type count struct {
	clones map[group]int
	oldest ages
	// until is when it is to be taken anew.
	until time.Time
}

// group is what clones are counted by.
type group struct {
	rule     string
	standing Standing
	reason   Reason
}

func newCensus(c *controller) *census { return &census{c, locked.New(&count{})} }

// take surveys everything, and has report hear of it, too.
func (c *census) take(report func(Finding)) {
	c.kept.Use(func(last *count) { *last = c.survey(report) })
}

// latest is a count that is new enough.
func (c *census) latest() (latest count) {
	c.kept.Use(func(last *count) {
		if !c.controller.now().Before(last.until) {
			*last = c.survey(func(Finding) {})
		}
		latest = *last
	})
	return latest
}

func (c *census) survey(report func(Finding)) count {
	began, clones := c.controller.now(), map[group]int{}
	oldest := c.controller.surveyWaits(func(f Finding) {
		clones[group{c.controller.ruleLabel(f.Rule), f.Standing, f.Step.Reason}]++
		report(f)
	})
	ended := c.controller.now()
	return count{clones, oldest, ended.Add(min(surveyShare*ended.Sub(began), censusKept))}
}

// Describe implements prometheus.Collector.
func (*census) Describe(out chan<- *prometheus.Desc) {
	out <- workingDesc
	out <- clonesDesc
	out <- missingDesc
	out <- oldestDesc
	out <- failingDesc
}

// Collect implements prometheus.Collector.
func (c *census) Collect(out chan<- prometheus.Metric) {
	var working float64
	if c.controller.working.Load() {
		working = 1
	}
	out <- prometheus.MustNewConstMetric(workingDesc, prometheus.GaugeValue, working)
	c.controller.failures.Use(func(f failures) {
		for _, target := range f.first(maxFailing) {
			out <- prometheus.MustNewConstMetric(failingDesc, prometheus.GaugeValue, 1,
				f[target].rule, string(target.Kind), target.Namespace, target.Name)
		}
	})
	for _, rule := range c.controller.live.Load().All() {
		var missing float64
		if c.controller.MissingSource(rule.Base) != "" {
			missing = 1
		}
		out <- prometheus.MustNewConstMetric(missingDesc, prometheus.GaugeValue, missing, rule.Name)
	}
	latest := c.latest()
	for g, clones := range latest.clones {
		out <- prometheus.MustNewConstMetric(clonesDesc, prometheus.GaugeValue, float64(clones), g.rule, string(g.standing), string(g.reason))
	}
	for key, age := range latest.oldest {
		out <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, age.Seconds(), key.rule, string(key.Standing))
	}
}
