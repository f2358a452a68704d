package keeper

import (
	"context"
	"errors"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
)

const (
	// whileStarting is how often the keeper looks whether it can know the clones.
	whileStarting = 250 * time.Millisecond
	// perStep is how many statuses a step writes. Somebody may have made thousands of rules
	// that nobody has, so those of rules in force are first in each step.
	perStep, betweenSteps = 100, 50 * time.Millisecond
)

// step brings every status up to date that may be written now. It returns when to look
// again.
func (k *Keeper) step(ctx context.Context) (again time.Duration, err error) {
	if !k.source.Working() {
		return whileStarting, nil
	}
	again = Interval
	var due []string
	for _, rule := range k.rules() {
		interval := Interval
		if _, revised := k.revised.Load(rule); revised {
			interval = soon
		}
		left := interval - k.clock.Since(k.written[rule])
		if _, exists := k.view.Get("", rule); exists && !k.source.Settled() {
			left = whileStarting // what is stored may be right although it cannot be known yet
		}
		if left > 0 {
			again = loop.Sooner(again, left)
			continue
		}
		k.revised.Delete(rule)
		if due = append(due, rule); len(due) == perStep {
			again = betweenSteps
			break
		}
	}
	if len(due) == 0 {
		return again, nil
	}
	facts, left := k.source.Facts(due)
	again = loop.Sooner(again, left)
	var errs []error
	for at, of := range facts {
		after, err := k.update(ctx, due[at], of)
		errs = append(errs, err)
		again = loop.Sooner(again, after)
	}
	return again, errors.Join(errs...)
}

// rules returns the rules in force, and then those that stored objects name.
func (k *Keeper) rules() []string {
	names := k.source.Rules()
	known := sets.New(names...)
	for _, object := range k.view.List() {
		if !known.Has(object.Name) {
			known.Insert(object.Name)
			names = append(names, object.Name)
		}
	}
	for name := range k.failures {
		if name != "" && !known.Has(name) {
			k.noteResult(name, nil)
		}
	}
	maps.DeleteFunc(k.written, func(name string, _ time.Time) bool { return !known.Has(name) })
	maps.DeleteFunc(k.pruned, func(name string, _ pruned) bool { return !known.Has(name) })
	return names
}

// update writes the status of one rule if it changed. It returns when to look again;
// zero if only an event matters.
func (k *Keeper) update(ctx context.Context, rule string, facts *rulestatus.Facts) (again time.Duration, err error) {
	object, exists := k.view.Get("", rule)
	now := k.clock.Now()
	if facts.SaysNothing() {
		return whileStarting, nil
	}
	if facts.Removed && facts.Clones.Empty() {
		if !exists || object.isBlank() {
			return 0, nil // what says something of a rule that nobody has is deleted, also if a user made it
		}
		k.written[rule] = now
		err = k.delete(ctx, object)
		k.noteResult(rule, err)
		return Interval, unlessBehind(err)
	}
	if !exists {
		object = &stored{}
	}
	status, again := rulestatus.Build(facts, &object.Status, now)
	if exists && (equality.Semantic.DeepEqual(status, object.Status) || k.pruned[rule].is(status, object)) {
		k.noteResult(rule, nil)
		return again, nil
	}
	k.written[rule] = now
	err = k.write(ctx, rule, object, exists, status)
	k.noteResult(rule, err)
	if err == nil {
		k.reportTurns(rule, facts, object, status, now)
	}
	return loop.Sooner(again, Interval), unlessBehind(err)
}
