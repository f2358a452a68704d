package sync

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headwater-k8s/headwater/internal/locked"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/survey"
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

// cloneMetrics counts the clones from the caches alone, so that no state has to be
// kept beside them but of clones that wait. Scrapes that come close together,
// and the page, share one survey.
type cloneMetrics struct {
	controller *controller
	kept       *locked.Value[*snapshot]
}

// snapshot is what came of a survey.
type snapshot struct {
	clones map[statusKey]int
	oldest progress.OldestPending
	// until is when it is to be taken anew.
	until time.Time
}

// statusKey is what clones are counted by.
type statusKey struct {
	rule     string
	standing survey.Status
	reason   plan.Reason
}

func newCloneMetrics(c *controller) *cloneMetrics { return &cloneMetrics{c, locked.New(&snapshot{})} }

// take surveys everything, and has report hear of it, too.
func (c *cloneMetrics) take(report func(survey.CloneStatus)) {
	c.kept.Use(func(last *snapshot) { *last = c.survey(report) })
}

// latest is a count that is new enough.
func (c *cloneMetrics) latest() (latest snapshot) {
	c.kept.Use(func(last *snapshot) {
		if !c.controller.now().Before(last.until) {
			*last = c.survey(func(survey.CloneStatus) {})
		}
		latest = *last
	})
	return latest
}

func (c *cloneMetrics) survey(report func(survey.CloneStatus)) snapshot {
	began, clones := c.controller.now(), map[statusKey]int{}
	oldest := c.controller.surveyPending(func(f survey.CloneStatus) {
		clones[statusKey{c.controller.RuleLabel(f.Rule), f.Status, f.Decision.Reason}]++
		report(f)
	})
	ended := c.controller.now()
	return snapshot{clones, oldest, ended.Add(min(surveyShare*ended.Sub(began), censusKept))}
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
	c.controller.failures.Use(func(f progress.Failures) {
		for _, target := range f.First(maxFailing) {
			out <- prometheus.MustNewConstMetric(failingDesc, prometheus.GaugeValue, 1,
				f[target].Rule, string(target.Kind), target.Namespace, target.Name)
		}
	})
	for _, rule := range c.controller.Live.Load().All() {
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
		out <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, age.Seconds(), key.Rule, string(key.Status))
	}
}

// mark has finding say what this process knows of the write that is due: that it
// failed, or that somebody undoes it each time.
func (c *controller) mark(finding survey.CloneStatus, now time.Time) survey.CloneStatus {
	if !finding.Decision.Writes() {
		return finding
	}
	c.fights.Use(func(f *progress.Fights) { finding = f.Mark(finding, now) })
	c.failures.Use(func(f progress.Failures) { finding = f.Mark(finding) })
	return finding
}

// surveyFailing is Survey that knows which clones failed, and over which
// somebody fights.
func (c *controller) surveyFailing(now time.Time, report func(survey.CloneStatus)) {
	c.fights.Use(func(f *progress.Fights) { f.Prune(now) })
	c.Survey(c.maxFraction(), c.lookUp, func(f survey.CloneStatus) { report(c.mark(f, now)) })
}

// surveyPending is surveyFailing that returns how long those wait that do. Of
// places that do not, no time is kept.
func (c *controller) surveyPending(report func(survey.CloneStatus)) progress.OldestPending {
	waits := progress.NewPendingSurvey(c.RuleNames(), c.now())
	c.surveyFailing(waits.Now, func(f survey.CloneStatus) {
		report(f)
		if !f.Decision.Writes() {
			return
		}
		var failed, seen, changed time.Time
		if f.Status == survey.Failed {
			failed = f.Since
		}
		c.pending.Use(func(u *progress.PendingWrites) { seen = u.Since[f.Target] })
		c.propagations.Use(func(s progress.Propagations) { changed = s.Began(f) })
		f.Rule = c.RuleLabel(f.Rule)
		waits.Add(f, failed, seen, changed)
	})
	c.pending.Use(func(u *progress.PendingWrites) { u.Since = waits.Since })
	return waits.Oldest
}
