package keeper

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
)

const (
	// surveyRatio bounds the share of time that surveys of one rule take.
	surveyRatio = 20
	// resurvey is how often every clone is visited again although none was touched.
	resurvey = 5 * time.Minute
)

// record is what the keeper remembers of one rule.
type record struct {
	clones *rulestatus.CloneFacts
	// sources are as they were just before the survey.
	sources rulestatus.Sources
	// dirty is true if a clone was touched since the survey.
	dirty    bool
	surveyed time.Time
	// cost is how long the survey took.
	cost time.Duration
	// written is when the status was last written, or that was tried.
	written time.Time
}

// due returns how long until clones are to be surveyed; at most 0 if they are now.
func (r *record) due(now time.Time) time.Duration {
	age := now.Sub(r.surveyed)
	switch {
	case r.surveyed.IsZero():
		return 0
	case r.dirty:
		return min(max(coalesce, surveyRatio*r.cost), Interval) - age
	case r.clones.IsMoving():
		return Interval - age
	default:
		return resurvey - age
	}
}

// step brings every status up to date that may be written now. It returns when to look
// again.
func (k *Keeper) step(ctx context.Context) (again time.Duration, err error) {
	now := k.clock.Now()
	if !k.source.Working() {
		return coalesce, nil
	}
	again = Interval
	rules := k.source.Rules()
	names, left := k.touched.take(now)
	again = loop.Sooner(again, left)
	for target := range names {
		k.markDirty(k.source.RulesOf(target))
	}
	var errs []error
	for _, rule := range append(rules, k.removed(rules)...) {
		after, err := k.update(ctx, rule, now)
		if err != nil {
			errs = append(errs, err)
		}
		again = loop.Sooner(again, after)
	}
	return again, errors.Join(errs...)
}

// markDirty marks rules as touched; all of them if the clone is not one of a rule in
// force.
func (k *Keeper) markDirty(rules []string) {
	for name, known := range k.records {
		if len(rules) == 0 || slices.Contains(rules, name) {
			known.dirty = true
		}
	}
}

// removed returns the stored objects of rules that are not in force.
func (k *Keeper) removed(rules []string) []string {
	var names []string
	for _, object := range k.view.List() {
		if !slices.Contains(rules, object.Name) {
			names = append(names, object.Name)
			if known := k.records[object.Name]; known != nil {
				known.dirty = true // few: their clones have an index
			}
		}
	}
	for name := range k.records {
		if _, exists := k.view.Get("", name); !exists && !slices.Contains(rules, name) {
			delete(k.records, name)
		}
	}
	return names
}

// update writes the status of one rule if it changed. It returns when to look again;
// zero if only an event matters.
func (k *Keeper) update(ctx context.Context, rule string, now time.Time) (again time.Duration, err error) {
	object, exists := k.view.Get("", rule)
	if exists && !k.source.Settled() {
		return coalesce, nil // what is stored may be right although it cannot be known yet
	}
	known := k.records[rule]
	if known == nil {
		known = &record{clones: rulestatus.NewCloneFacts()}
		k.records[rule] = known
	}
	if left := Interval - now.Sub(known.written); left > 0 {
		return left, nil
	}
	facts := k.gather(rule, known, now)
	again = known.due(now)
	if facts.Removed && known.clones.Empty() {
		if !exists || !object.isOurs() {
			return 0, nil
		}
		known.written = now
		return Interval, k.delete(ctx, object)
	}
	if !exists {
		object = &stored{}
	}
	status, later := rulestatus.Build(facts, &object.Status, now)
	again = loop.Sooner(again, later)
	if exists && equality.Semantic.DeepEqual(status, object.Status) {
		return again, nil
	}
	known.written = now
	return loop.Sooner(again, Interval), k.write(ctx, rule, object, exists, status)
}

// gather returns what is known of rule. It surveys the clones first if that is due, or
// if a source changed: a status never counts clones as they were before the versions
// of the sources that it names.
func (k *Keeper) gather(rule string, known *record, now time.Time) *rulestatus.Facts {
	facts := k.source.Facts(rule, known.clones)
	if known.due(now) > 0 && equality.Semantic.DeepEqual(facts.Sources, known.sources) {
		return facts
	}
	known.sources = facts.Sources
	k.survey(rule, known)
	facts = k.source.Facts(rule, known.clones)
	facts.Sources = known.sources
	return facts
}

func (k *Keeper) survey(rule string, known *record) {
	began := k.clock.Now()
	known.dirty = false
	known.clones = k.source.Survey(rule)
	known.surveyed = k.clock.Now()
	known.cost = known.surveyed.Sub(began)
}
