package evidence

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/kube/admission"
	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/stages"
	"github.com/headwater-k8s/headwater/reload/consumerhealth"
)

// keep brings one record up to date. again is when passing time may change it; zero if it
// does not.
func (k *Keeper) keep(ctx context.Context, key revisions.Key, d *delivery) (again time.Duration, err error) {
	by := k.Process.Name() // what is seen after the next loss has another name
	if err := k.look(ctx, key, d, by); err != nil {
		k.doubt(d)
		return retry, err
	}
	upTo, complete, err := k.judge(key, d)
	if err != nil || !complete {
		k.doubt(d)
		return retry, err
	}
	again = d.again(k.Now())
	if d.needsLook() {
		again = loop.Sooner(again, retry)
	}
	evidence := d.evidence(by, upTo, k.Now())
	awaited := d.isSpread() && !d.spread
	if same(evidence, d.written) {
		return again, nil
	}
	if wait := d.wroteAt.Add(pace).Sub(k.Now()); wait > 0 && !awaited {
		return loop.Sooner(again, wait), nil
	}
	if err := k.write(ctx, d, evidence, k.Now()); err != nil {
		return again, err
	}
	d.spread = d.isSpread()
	return again, nil
}

// isSpread reports whether all clones of the stages that the revision has reached hold it. The
// first evidence after that is what the stage waits for.
func (d *delivery) isSpread() bool {
	for _, place := range d.places {
		if !place.holds && d.stored.HasReached(d.rule.Stages, place.stage) {
			return false
		}
	}
	return true
}

// doubt lets nobody believe any more what this process wrote on d: something may have changed
// since that it cannot see, or cannot write.
func (k *Keeper) doubt(d *delivery) {
	if d.written.By == k.Process.Name() {
		k.Process.Renew()
	}
}

// same reports whether two records say the same, whenever it was seen.
func same(a, b revisions.Evidence) bool {
	b.At, b.Version = a.At, a.Version
	return reflect.DeepEqual(a, b)
}

// again returns how long nothing changes by itself; zero for ever.
func (d *delivery) again(now time.Time) (again time.Duration) {
	for _, place := range d.places {
		if !place.again.IsZero() {
			again = loop.Sooner(again, max(time.Millisecond, place.again.Sub(now)))
		}
	}
	return again
}

// judge judges the consumers of every namespace in which something changed or is due. upTo
// is the version of the clones that were then all judged. complete is false if some could
// not be read; they are judged again.
func (k *Keeper) judge(key revisions.Key, d *delivery) (upTo string, complete bool, err error) {
	dirty, upTo := k.takeDirty(key)
	for namespace, place := range d.places {
		if !place.again.IsZero() && !k.Now().Before(place.again) {
			dirty[namespace] = true
		}
	}
	for namespace := range dirty {
		read, err := k.judgeIn(key, d, namespace)
		if err != nil || !read {
			k.putBack(key, dirty)
			return "", false, err
		}
	}
	return upTo, true, nil
}

func (k *Keeper) takeDirty(key revisions.Key) (dirty map[string]bool, version string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	one := k.changes[key]
	dirty, one.dirty = one.dirty, map[string]bool{}
	return dirty, one.version
}

func (k *Keeper) putBack(key revisions.Key, dirty map[string]bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.Copy(k.changes[key].dirty, dirty)
}

// judgeIn judges the consumers in namespace. It returns false if they could not be read.
func (k *Keeper) judgeIn(key revisions.Key, d *delivery, namespace string) (read bool, err error) {
	clone := k.cloneIn(key, d.rule, namespace)
	stage, known := k.stageOf(d.rule, namespace)
	switch {
	case !known:
		delete(d.places, namespace)
		return true, nil
	case clone == nil: // it is being recreated, and its consumers still run what they read
		place := d.at(namespace)
		place.stage, place.holds, place.readers, place.again = stage, false, nil, time.Time{}
		return true, nil
	}
	place := d.at(namespace)
	place.sees(clone, k.Now())
	found, err := k.Find(clone, d.keys, place.isSynced(k.Now()))
	if err != nil || found.Unread {
		return false, err
	}
	place.stage = stage
	place.observe(clone, &found)
	place.count, place.idle, place.readers, place.again = len(found.Consumers), 0, nil, time.Time{}
	if holds := slices.Equal(clone.Digests, d.digests); holds != place.holds {
		place.holds = holds
		if holds && place.written.IsZero() {
			place.written = clone.ChangedAt
		}
	}
	place.judge(found.Consumers, d.stored.CreationTimestamp.Time, d.rule.Stages.Gate.Consumers == stages.GateRestarted, k.Now())
	return true, nil
}

// before returns what fails or rolls in the namespaces that look is about. read is false
// if that cannot be known now.
func (k *Keeper) before(key revisions.Key, d *delivery) (before map[string]revisions.Condition, read bool, err error) {
	before = map[string]revisions.Condition{}
	for _, place := range d.places {
		maps.Copy(before, place.before)
	}
	history := k.Revisions.History(key)
	for _, namespace := range k.Caches.Namespaces.List() {
		clone := k.cloneIn(key, d.rule, namespace.Name)
		stage, known := k.stageOf(d.rule, namespace.Name)
		if clone == nil || !known || !d.stored.HasReached(d.rule.Stages, stage) || slices.Equal(clone.Digests, d.digests) {
			continue
		}
		found, err := k.Find(clone, d.keys, false)
		if err != nil || found.Unread {
			return nil, false, err
		}
		place := d.at(namespace.Name)
		place.observe(clone, &found)
		excused := k.excuses(d, history, clone)
		for _, c := range found.Consumers {
			place.knows(c)
			if condition := excused(c); condition != "" {
				before[c.Name] = condition
			}
		}
	}
	return before, true, nil
}

// look writes down what fails or rolls in the namespaces of the stage, and of those before
// it, whose clone does not hold the revision yet. If that cannot be done now, the delivery
// needs it still.
func (k *Keeper) look(ctx context.Context, key revisions.Key, d *delivery, by string) error {
	if !d.needsLook() {
		return nil
	}
	before, read, err := k.before(key, d)
	if d.crowd = len(before); err != nil || !read || d.crowd > revisions.MaxBefore {
		return err
	}
	evidence := d.written
	evidence.By, evidence.At, evidence.UpTo = by, k.Now().UTC().Truncate(time.Second), ""
	evidence.Look, evidence.Before = d.stored.Stage, nil
	if len(before) > 0 {
		evidence.Before = before
	}
	if err := k.write(ctx, d, evidence, d.wroteAt); err != nil {
		return err
	}
	d.looked, d.spread = evidence.Look, false
	d.loadBefore(before)
	return nil
}

// excuses returns what excuses the consumers of a clone that does not hold the revision of
// d. If it holds one that was not delivered, that is what excused them from it. If its
// content is of no revision, it is not known what they run, and nothing does.
func (k *Keeper) excuses(d *delivery, history revisions.History, clone *object.Digested) func(consumerhealth.Consumer) revisions.Condition {
	var undelivered *revisions.Revision
	for _, revision := range slices.Backward(history) {
		if !slices.Equal(d.rule.AsCloned(revision.Digests), clone.Digests) {
			continue
		}
		if revision.Verdict == revisions.Delivered {
			since, before := history.DeliveredSince(d.stored.Number), history.Numbered(d.stored.Number-1)
			return func(c consumerhealth.Consumer) revisions.Condition {
				return consumerhealth.Look(c, since, before.Excused(c.Name), k.Now())
			}
		}
		if undelivered == nil {
			undelivered = revision
		}
	}
	return func(c consumerhealth.Consumer) revisions.Condition {
		return undelivered.Excused(c.Name)
	}
}

// write stores the record. at is when it counts as written, for the pace.
func (k *Keeper) write(ctx context.Context, d *delivery, evidence revisions.Evidence, at time.Time) error {
	ref := object.Ref{Kind: d.stored.Source.Kind, Namespace: d.stored.Namespace, Name: d.stored.Name}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": d.stored.UID, "annotations": map[string]string{mark.Evidence: evidence.String()},
	}})
	if err != nil {
		return fmt.Errorf("write the evidence on %s: %w", ref, err)
	}
	resource := schema.GroupVersionResource{Version: "v1", Resource: ref.Kind.Resource()}
	patched, err := k.Client.Resource(resource).Namespace(ref.Namespace).Patch(ctx, ref.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: mark.FieldManager})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err): // deleted or recreated: the cache will show it
		return nil
	case err != nil:
		k.doubt(d)
		return fmt.Errorf("write the evidence on %s: %w", ref, admission.Redact(err))
	}
	d.written, d.wroteAt, d.version = evidence, at, patched.ResourceVersion
	return nil
}
