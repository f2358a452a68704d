package evidence

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/reload/consumerhealth"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// delivery is one revision that is being delivered.
type delivery struct {
	rule   *spec.Rule
	stored *revisions.Stored
	// digests are those of a clone of it.
	digests object.Digests
	// keys are those that the revision changes in clones; nil if all may.
	keys   []string
	places map[string]*place
	// looked is the stage for which before was written; empty before the first.
	looked string
	// crowd is how many consumers the last look found failing or rolling.
	crowd int
	// written is what the record says as far as this process knows, wroteAt when it wrote
	// that, and version the resourceVersion of the write.
	written revisions.Evidence
	wroteAt time.Time
	version string
	// spread is true once that was seen since all clones hold the revision; see isSpread.
	spread bool
}

// refresh begins, updates or ends the delivery of key.
func (k *Keeper) refresh(key revisions.Key) {
	rule, inForce := k.Rules.Load().Named(key.Rule)
	stored := k.candidate(key)
	if !inForce || stored == nil || !rule.NeedsEvidence() {
		k.end(key)
		return
	}
	one := k.deliveries[key]
	shown := one != nil && (one.version == "" || !object.NewerThan(one.version, stored.ResourceVersion))
	switch {
	case one == nil || one.isOver(stored, shown):
		one = &delivery{places: map[string]*place{}, looked: stored.Evidence.Look, written: stored.Evidence}
		k.deliveries[key] = one
		one.loadBefore(stored.Evidence.Before)
		k.follow(key, rule)
	case one.rule != rule:
		k.dirtyAll(key)
	}
	one.rule, one.stored = rule, stored
	k.content(key, one, rule.AsCloned(stored.Digests), changedKeys(rule, stored, k.Revisions.History(key).Base()))
	if shown {
		one.written = stored.Evidence // somebody else may have written it
	}
}

// content notes what clones of the revision hold. What readers showed of other content counts no
// more.
func (k *Keeper) content(key revisions.Key, d *delivery, digests object.Digests, keys []string) {
	if !slices.Equal(d.digests, digests) {
		for _, place := range d.places {
			place.past = map[string]consumerhealth.Past{}
		}
	}
	if (d.keys == nil) != (keys == nil) || !slices.Equal(d.keys, keys) {
		k.dirtyAll(key)
	}
	d.digests, d.keys = digests, keys
}

// changedKeys returns the keys of clones that the revision changes: those that were recorded, and
// those that the rule clones since.
func changedKeys(rule *spec.Rule, stored *revisions.Stored, base *revisions.Revision) []string {
	if stored.ChangedKeys == nil || base == nil {
		return stored.ChangedKeys
	}
	changed := append(slices.Clone(stored.ChangedKeys), decide.ChangedKeys(rule.AsCloned(base.Digests), rule.AsCloned(stored.Digests))...)
	slices.Sort(changed)
	return slices.Compact(changed)
}

// isOver reports whether stored is another delivery than d: of another revision, or again
// of the same. shown is true if stored is no older than what was last written.
func (d *delivery) isOver(stored *revisions.Stored, shown bool) bool {
	return d.stored.UID != stored.UID || shown && stored.Evidence.Look == "" && d.looked != ""
}

func (k *Keeper) end(key revisions.Key) {
	delete(k.deliveries, key)
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.changes, key)
}

// candidate returns the revision of key that is being delivered; nil if there is none.
func (k *Keeper) candidate(key revisions.Key) (candidate *revisions.Stored) {
	for _, stored := range k.Revisions.Stored(key) {
		if stored.UnderWay() && (candidate == nil || stored.Number > candidate.Number) {
			candidate = stored
		}
	}
	return candidate
}

// follow notes every clone of key, and each change of one from now on.
func (k *Keeper) follow(key revisions.Key, rule *spec.Rule) {
	k.mu.Lock()
	defer k.mu.Unlock()
	one := &changes{namespaces: map[string]bool{}, dirty: map[string]bool{}, version: noClone}
	k.changes[key] = one
	for _, namespace := range k.Caches.Namespaces.List() {
		if clone := k.cloneIn(key, rule, namespace.Name); clone != nil {
			one.add(clone)
		}
	}
}

func (k *Keeper) dirtyAll(key revisions.Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	one := k.changes[key]
	one.dirty = maps.Clone(one.namespaces)
}

// cloneIn returns the clone of key in namespace; nil if there is none. It may still say
// that it is of a rule whose history this one took over.
func (k *Keeper) cloneIn(key revisions.Key, rule *spec.Rule, namespace string) *object.Digested {
	name := rule.NameIn(namespace, key.Source.Name)
	if name == "" || namespace == key.Source.Namespace {
		return nil
	}
	clone, found := k.Caches.Clones[key.Source.Kind].Get(namespace, name)
	if !found || clone.IsTerminating() {
		return nil
	}
	marks, ours := mark.Of(clone)
	hadAnother := marks.Rule == key.Rule && key.Source == rule.Source.Ref() // the rule had another source
	if !ours || marks.Source != key.Source && !hadAnother {
		return nil
	}
	if _, ofAnother := k.Rules.Load().Named(marks.Rule); ofAnother && marks.Rule != key.Rule {
		return nil
	}
	return clone
}

// stageOf returns the stage of namespace. known is false for one that is not cached, and for
// one that the rule does not clone to, which may have a clone that was left behind.
func (k *Keeper) stageOf(rule *spec.Rule, namespace string) (stage int, known bool) {
	found, known := k.Caches.Namespaces.Get("", namespace)
	if !known || found.Terminating || !rule.ClonedTo.Matches(namespace, found.Labels) {
		return 0, false
	}
	return rule.Stages.Of(namespace, found.Labels), true
}

// at returns the place in namespace.
func (d *delivery) at(namespace string) *place {
	if d.places[namespace] == nil {
		d.places[namespace] = &place{past: map[string]consumerhealth.Past{}, before: map[string]revisions.Condition{}, controllers: map[types.UID]bool{}}
	}
	return d.places[namespace]
}

// loadBefore distributes the record to the places.
func (d *delivery) loadBefore(before map[string]revisions.Condition) {
	for name, condition := range before {
		namespace, _, _ := strings.Cut(name, "/")
		d.at(namespace).before[name] = condition
	}
}

// evidence returns what the record is to say.
func (d *delivery) evidence(by, upTo string, now time.Time) revisions.Evidence {
	e := revisions.Evidence{By: by, Look: d.looked, UpTo: upTo, At: now.UTC().Truncate(time.Second)}
	sums := make([]revisions.StageEvidence, len(d.rule.Stages.Names()))
	var bad []consumerhealth.Result
	for namespace, place := range d.places {
		e.Readers, e.Idle = e.Readers+place.count, e.Idle+place.idle
		for name, condition := range place.before {
			if e.Before == nil {
				e.Before = map[string]revisions.Condition{}
			}
			e.Before[name] = condition
		}
		if !place.holds {
			continue
		}
		if place.isBroken() {
			e.Broken = append(e.Broken, namespace)
		}
		bad = append(bad, place.bad()...)
		if d.stored.HasReached(d.rule.Stages, place.stage) {
			sums[place.stage] = consumerhealth.Add(sums[place.stage], place.readers, d.rule.Stages.Restart(place.stage))
		} else if present := d.rule.Stages.Index(d.stored.Stage); present >= 0 { // it was taken along to a later stage
			sums[present] = consumerhealth.Add(sums[present], slices.DeleteFunc(place.bad(), isWaiting), d.rule.Stages.Restart(present)) // where nobody waits for it
		}
	}
	for stage, name := range d.rule.Stages.Names() {
		if sums[stage].Name = name; d.stored.HasReached(d.rule.Stages, stage) {
			e.Stages = append(e.Stages, sums[stage])
		}
	}
	slices.Sort(e.Broken)
	e.Broken = e.Broken[:min(len(e.Broken), revisions.MaxFailing+1)]
	e.Failing, e.Causes = causes(bad)
	if d.needsLook() && d.crowd > revisions.MaxBefore {
		e.Causes = []revisions.Cause{{Consumer: strconv.Itoa(d.crowd) + " consumers", Reason: revisions.ReasonCrowd}}
	}
	return e
}

// needsLook reports whether the stage of d has yet to be opened.
func (d *delivery) needsLook() bool { return d.looked != d.stored.Stage }

func isWaiting(r consumerhealth.Result) bool { return r.State == consumerhealth.Waiting }

// causes returns the names of all that fail, and the first of those that fail or are waited
// for.
func causes(bad []consumerhealth.Result) (failing []string, first []revisions.Cause) {
	fails := func(r consumerhealth.Result) bool { return r.State == consumerhealth.Failing }
	slices.SortFunc(bad, func(a, b consumerhealth.Result) int {
		if fails(a) != fails(b) {
			if fails(a) {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	for _, r := range bad {
		if fails(r) && len(failing) <= revisions.MaxFailing {
			failing = append(failing, r.Name)
		}
		if len(first) < revisions.MaxCauses {
			first = append(first, revisions.Cause{Consumer: r.Name, Reason: r.Reason, Pod: r.Pod, Failing: fails(r)})
		}
	}
	return failing, first
}
