package board

import (
	"maps"
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// costRatio bounds the cost of reading: what was evaluated is reused for this many times
// as long as that took.
const costRatio = 10

// Refresh evaluates what changed. It leaves that for later if the last evaluation took
// long and is not older than longest, or if the first change is not older than settle.
// left is then how long to wait. What is read afterwards is never older than the sources
// that the cache showed before.
func (b *Board) Refresh(settle, longest time.Duration) (left time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, behind := b.Now(), b.noteSources()
	behind = b.noteFull() || behind
	age, changed := b.unread(now)
	valid := b.read.Add(min(costRatio*b.took, longest)).Sub(now)
	switch {
	case behind:
	case changed && max(valid, settle-age) > 0:
		return max(valid, settle-age)
	case valid > 0:
		return 0
	}
	b.evaluate(now)
	b.read = b.Now()
	b.took = b.read.Sub(now)
	return 0
}

// noteSources has everything evaluated if the rules are others than at the last
// evaluation, and the targets of each source that has another version: a handler may run
// later than a reader of the cache. It reports whether there is any of that.
func (b *Board) noteSources() (behind bool) {
	set := b.Reader.Live.Load()
	if behind = set != b.set; behind {
		b.set, b.versions = set, map[ruleSource]string{}
		b.AllChanged()
	}
	others := behind
	for _, rule := range set.All() {
		for _, source := range b.Reader.Sources(rule.Base) {
			of, version := ruleSource{rule.Name, source}, ""
			if found, _ := b.Reader.Caches.Sources.Get(source); found != nil {
				version = found.ResourceVersion
			}
			if known, evaluated := b.versions[of]; evaluated && known == version {
				continue
			}
			b.versions[of], behind = version, true
			if !others {
				b.Changed(b.Reader.Targets(rule, source)...)
			}
		}
	}
	return behind
}

// noteFull has everything evaluated if a kind has been read since the last evaluation, and reports
// whether one has.
func (b *Board) noteFull() (behind bool) {
	for _, kind := range object.Kinds {
		if !b.full[kind] && b.Reader.Caches.IsFull(kind) {
			b.full[kind], behind = true, true
			b.AllChanged()
		}
	}
	return behind
}

// evaluate looks again at what changed.
func (b *Board) evaluate(now time.Time) {
	b.Tracker.ForgetFights(now)
	reading := b.Reader.NewReading(b.MaxFraction(), b.Lookup)
	changed, all := b.take()
	for target := range b.again {
		changed[target] = struct{}{}
	}
	clear(b.again)
	b.version++
	if all || b.holdsChanged(reading) {
		b.evaluateAll(reading, now)
	} else {
		for target := range changed {
			b.evaluateTarget(reading, target, now)
		}
	}
	clear(b.holds)
	for key, known := range b.standings {
		if known.clones == 0 {
			delete(b.standings, key)
		} else if known.isGuarded() {
			b.holds[known.Rule] = reading.Held(known.Rule)
		}
	}
}

// evaluateAll looks again at every target that there is, and at those that the board
// knows.
func (b *Board) evaluateAll(reading *survey.Reading, now time.Time) {
	names := slices.Collect(maps.Keys(b.namespaces))
	for _, found := range b.Reader.Caches.Namespaces.List() {
		if b.namespaces[found.Name] == nil {
			names = append(names, found.Name)
		}
	}
	for _, name := range names {
		targets := reading.TargetsIn(name)
		if known := b.namespaces[name]; known != nil {
			for _, e := range known.entries {
				targets[e.target(name)] = struct{}{}
			}
		}
		for target := range targets {
			b.evaluateTarget(reading, target, now)
		}
	}
}

// holdsChanged reports whether the removals of a rule are held that were not held at the
// last evaluation, or the reverse.
func (b *Board) holdsChanged(reading *survey.Reading) bool {
	for rule, was := range b.holds {
		if (reading.Held(rule) == nil) != (was == nil) {
			return true
		}
	}
	return false
}

// evaluateTarget looks again at target. If its state can change with the time or is not
// known yet, the next evaluation does so, too.
func (b *Board) evaluateTarget(reading *survey.Reading, target object.Ref, now time.Time) {
	known := b.namespaces[target.Namespace]
	if known == nil {
		known = &namespace{}
	}
	before := known.take(target, b.before[:0])
	b.before = before
	was, wasDue := b.due[target]
	delete(b.due, target)
	from := len(known.entries)
	err := reading.Report(target, func(f survey.CloneStatus) {
		f = b.Tracker.Mark(f, now)
		if changesWithTime(f.Decision.Reason) || f.Decision.IsGuarded() { // the record of what passed comes later
			b.again[target] = struct{}{}
		}
		known.entries = append(known.entries, b.enter(f, before, now))
	})
	if err != nil { // something has not been read yet, so it stands as it stood
		b.again[target] = struct{}{}
		known.entries = append(known.entries[:from], before...)
		for _, e := range before {
			e.clones++
		}
		if wasDue {
			b.due[target] = was
		}
	}
	if _, isDue := b.due[target]; wasDue && !isDue {
		b.Tracker.NotDue(target)
	}
	if slices.EqualFunc(before, known.entries[from:], func(a, b entry) bool { return a.standing == b.standing }) {
		return
	}
	known.changed = b.version
	if b.namespaces[target.Namespace] = known; len(known.entries) == 0 {
		delete(b.namespaces, target.Namespace)
		b.removed = b.version
	}
}

// take removes the entries of target and returns them, appended to taken.
func (n *namespace) take(target object.Ref, taken []entry) []entry {
	n.entries = slices.DeleteFunc(n.entries, func(e entry) bool {
		is := e.name == target.Name && e.Kind == target.Kind
		if is {
			e.clones--
			taken = append(taken, e)
		}
		return is
	})
	return taken
}

// enter counts f. before has the entries of its target until now.
func (b *Board) enter(f survey.CloneStatus, before []entry, now time.Time) entry {
	key := Standing{
		Rule: f.Rule, Source: f.Source, Kind: f.Target.Kind, Status: f.Status,
		Action: f.Decision.Action, Reason: f.Decision.Reason, Message: f.Decision.Message, Revision: f.Revision,
		Until: f.Decision.Until.Round(0).UTC(),
	}
	if f.Status == survey.Failed || f.Decision.Reason == plan.MassRemoval {
		key.Message = ""
	}
	counted := b.standings[key]
	if counted == nil {
		counted = &standing{Standing: key}
		b.standings[key] = counted
	}
	counted.clones++
	if f.Decision.Writes() {
		b.due[f.Target] = dueTarget{progress.PendingKey{Rule: b.Reader.RuleLabel(f.Rule), Status: f.Status}, b.Tracker.DueSince(f, now)}
	}
	entered := entry{name: f.Target.Name, standing: counted, since: f.Since.UnixNano()}
	if f.Since.IsZero() {
		entered.since, entered.seen = now.UnixNano(), true
		for _, e := range before {
			if e.Rule == f.Rule && e.Status == f.Status {
				entered.since, entered.seen = e.since, e.seen
			}
		}
	}
	return entered
}

// changesWithTime reports whether reason can cease to hold without any change: fights
// end, and requests about the clones of a former rule expire.
func changesWithTime(reason plan.Reason) bool {
	return reason == progress.Fighting || reason == progress.AdmissionChanges || reason == plan.Pruned || reason == plan.Released
}

// isGuarded reports whether the clones are due for a removal that can be held.
func (s Standing) isGuarded() bool {
	return plan.Decision{Action: s.Action, Reason: s.Reason}.IsGuarded() || s.Reason == plan.MassRemoval
}
