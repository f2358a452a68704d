package keeper

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
)

const (
	// whileStarting is how often the keeper looks whether it can know the clones.
	whileStarting = 250 * time.Millisecond
	// perStep is how many statuses a step writes, and formerPerStep the least of them of rules that are
	// not in force, of which somebody may have made thousands.
	perStep, formerPerStep, betweenSteps = 100, 10, 50 * time.Millisecond
)

// step brings every status up to date that may be written now, or the next perStep of them. It
// returns when to look again.
func (k *Keeper) step(ctx context.Context) (again time.Duration, err error) {
	if !k.source.Working() {
		return whileStarting, nil
	}
	inForce, former := k.rules()
	due := k.takeRevised(inForce)
	due, again = k.take(due, inForce, &k.inForce, perStep)
	due, left := k.take(due, former, &k.former, max(perStep-len(due), formerPerStep))
	again = loop.Sooner(again, left)
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

// takeRevised returns those of names of which a revision changed, and whose status may be written.
func (k *Keeper) takeRevised(names []string) (due []string) {
	for _, name := range names {
		if _, revised := k.revised.Load(name); revised && len(due) < perStep && k.left(name) <= 0 {
			k.revised.Delete(name)
			due = append(due, name)
		}
	}
	return due
}

// take appends to due the next names whose status may be written, at most limit. from is where the
// last step ended: what is right already is looked at each time, and must not keep off the rest. again
// is when to take more.
func (k *Keeper) take(due, names []string, from *int, limit int) (_ []string, again time.Duration) {
	again = Interval
	known := len(due)
	for at := min(*from, len(names)); at < len(names); at++ {
		left := k.left(names[at])
		switch {
		case slices.Contains(due[:known], names[at]):
		case left > 0:
			again = loop.Sooner(again, left)
		default:
			due = append(due, names[at])
		}
		if len(due) == known+limit {
			*from = at + 1
			return due, betweenSteps
		}
	}
	*from = 0
	return due, again
}

// left returns for how long the status of rule may not be written.
func (k *Keeper) left(rule string) time.Duration {
	if _, exists := k.view.Get("", rule); exists && !k.source.Settled() {
		return whileStarting // what is stored may be right although it cannot be known yet
	}
	interval := Interval
	if _, revised := k.revised.Load(rule); revised {
		interval = soon
	}
	return interval - k.clock.Since(k.written[rule])
}

// rules returns the rules in force, and the others that stored objects name.
func (k *Keeper) rules() (inForce, former []string) {
	inForce = k.source.Rules()
	known := sets.New(inForce...)
	for _, object := range k.view.List() {
		if !known.Has(object.Name) {
			known.Insert(object.Name)
			former = append(former, object.Name)
		}
	}
	slices.Sort(former)
	for name := range k.failures {
		if name != "" && !known.Has(name) {
			k.noteResult(name, nil)
		}
	}
	maps.DeleteFunc(k.written, func(name string, _ time.Time) bool { return !known.Has(name) })
	maps.DeleteFunc(k.pruned, func(name string, _ pruned) bool { return !known.Has(name) })
	return inForce, former
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
