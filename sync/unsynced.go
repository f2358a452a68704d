package sync

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
)

// waiting lists the standings of a place that waits for a write.
var waiting = []Standing{Behind, Drifting, Fights, Failed, Removing}

// unsynced is since when places wait for a write: those that did at the latest
// look at all of them, and that nothing was written to since.
type unsynced struct{ since map[object.Ref]time.Time }

// settled forgets a place that was brought to what it should be.
func (u *unsynced) settled(target object.Ref) { delete(u.since, target) }

// ages is how long the place that has waited longest has, by rule and standing.
type ages map[ageKey]time.Duration

type ageKey struct {
	rule string
	Standing
}

// waits are the places that wait for a write at one moment.
type waits struct {
	now    time.Time
	since  map[object.Ref]time.Time
	oldest ages
}

// newWaits has an age for each of these rules, also where nothing waits.
func newWaits(rules []string, now time.Time) waits {
	w := waits{now: now, since: map[object.Ref]time.Time{}, oldest: ages{}}
	for _, rule := range rules {
		for _, standing := range waiting {
			w.oldest[ageKey{rule, standing}] = 0
		}
	}
	return w
}

// add takes in that the place of f waits for a write, since the earliest of
// these times that is known, or else since now.
func (w *waits) add(f Finding, times ...time.Time) {
	since := w.now
	for _, at := range times {
		if !at.IsZero() && at.Before(since) {
			since = at
		}
	}
	w.since[f.Target] = since
	key := ageKey{f.Rule, f.Standing}
	w.oldest[key] = max(w.oldest[key], w.now.Sub(since))
}

// mark has finding say what this process knows of the write that is due: that it
// failed, or that somebody undoes it each time.
func (c *controller) mark(finding Finding, now time.Time) Finding {
	if !finding.Step.Writes() {
		return finding
	}
	c.fights.Use(func(f *fights) { finding = f.mark(finding, now) })
	c.failures.Use(func(f failures) { finding = f.mark(finding) })
	return finding
}

// surveyFailing is Survey that knows which clones failed, and over which
// somebody fights.
func (c *controller) surveyFailing(now time.Time, report func(Finding)) {
	c.fights.Use(func(f *fights) { f.prune(now) })
	c.Survey(c.maxFraction(), c.look, func(f Finding) { report(c.mark(f, now)) })
}

// surveyWaits is surveyFailing that returns how long those wait that do. Of
// places that do not, no time is kept.
func (c *controller) surveyWaits(report func(Finding)) ages {
	waits := newWaits(c.ruleNames(), c.now())
	c.surveyFailing(waits.now, func(f Finding) {
		report(f)
		if !f.Step.Writes() {
			return
		}
		var failed, seen, changed time.Time
		if f.Standing == Failed {
			failed = f.Since
		}
		c.unsynced.Use(func(u *unsynced) { seen = u.since[f.Target] })
		c.spreads.Use(func(s spreads) { changed = s.began(f) })
		f.Rule = c.ruleLabel(f.Rule)
		waits.add(f, failed, seen, changed)
	})
	c.unsynced.Use(func(u *unsynced) { u.since = waits.since })
	return waits.oldest
}
