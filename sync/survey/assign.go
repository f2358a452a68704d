package survey

import (
	"fmt"
	"slices"
	"strconv"
	"time"
	"weak"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// assign returns candidate with the content of the revision that target gets in place
// of the source's, and that revision; nil if candidate keeps the source's.
func (o *Reader) assign(candidate plan.Candidate, target object.Ref, namespace *plan.Namespace) (plan.Candidate, *revisions.Revision) {
	rule, source := candidate.Rule, candidate.Source
	key := revisions.Key{Rule: rule.Name, Source: candidate.Ref}
	history := o.Revisions.History(key)
	if len(history) == 0 && rule.KeepsHistory() && (len(o.Inheritance(key)) > 0 || o.Revisions.HasForeign(key)) {
		candidate.Unrecorded = true // somebody may have rolled back, or the source may be rejected
		return candidate, nil
	}
	clone := delivery.Clone{Namespace: namespace.Name, Has: o.held(rule, source, history, target)}
	var revision *revisions.Revision
	if rule.Stages == nil {
		var follows bool
		if revision, follows = delivery.AssignWithoutStages(history, history.Of(source.Content, source.Digests), clone); follows {
			return candidate, nil
		}
	} else {
		clone.Stage = rule.Stages.Of(namespace.Name, namespace.Labels)
		revision = delivery.Assign(rule.Stages, history, clone)
	}
	if revision == nil {
		candidate.Unrecorded = true
		return candidate, nil
	}
	candidate.Source = withContent(source, revision)
	if rule.Stages != nil || revision.Pinned == "" {
		candidate.Revision = revision.Number
	}
	candidate.Invalid = "" // what is not valid was recorded as rejected
	return candidate, revision
}

// held returns the revision of history whose content the clone at target has: the one
// that it names, if that is so. source is the cached source.
func (o *Reader) held(rule *spec.Rule, source *object.Full, history revisions.History, target object.Ref) *revisions.Revision {
	clone, found := o.Caches.Clones[target.Kind].Get(target.Namespace, target.Name)
	if !found {
		return nil
	}
	if marks, ours := mark.Of(clone); !ours || marks.Source != source.Ref() {
		return nil
	}
	revision := history.Numbered(revisionOf(clone))
	if revision == nil || !o.hasContentOf(clone, rule, source, revision) {
		return nil
	}
	return revision
}

// has reports whether the clone at target names revision, and has its content. source is
// the cached source.
func (o *Reader) has(rule *spec.Rule, source *object.Full, revision *revisions.Revision, target object.Ref) bool {
	if o.namedAt(target) != revision.Number {
		return false
	}
	clone, found := o.Caches.Clones[target.Kind].Get(target.Namespace, target.Name)
	return found && o.hasContentOf(clone, rule, source, revision)
}

func (o *Reader) hasContentOf(clone *object.Digested, rule *spec.Rule, source *object.Full, revision *revisions.Revision) bool {
	candidate := plan.Candidate{Rule: rule, Source: withContent(source, revision), Revision: revision.Number}
	return o.wanted(candidate, source, revision).HasPayloadOf(clone)
}

// maxWanted is how many results of plan.NewWanted a Reader remembers.
const maxWanted = 1024

// wantedKey identifies what plan.NewWanted gets. It keeps no content in memory.
type wantedKey struct {
	rule     *spec.Rule
	source   weak.Pointer[object.Full]
	revision weak.Pointer[revisions.Revision]
}

// wanted returns plan.NewWanted of candidate, which is computed once and not for each
// target. source is the cached source, and revision what assign returned for it.
func (o *Reader) wanted(candidate plan.Candidate, source *object.Full, revision *revisions.Revision) *plan.Wanted {
	key := wantedKey{candidate.Rule, weak.Make(source), weak.Make(revision)}
	if known, found := o.wantedOf.Get(key); found {
		return known.(*plan.Wanted)
	}
	wanted := plan.NewWanted(candidate.Rule, candidate.Source, candidate.Revision)
	o.wantedOf.Add(key, wanted)
	return wanted
}

// Apply returns the revisions that request changes. The error says why it cannot be
// done. What fails the checks of rule now is delivered by no request, and what an emptied
// source has only once that is approved.
func (o *Reader) Apply(rule *spec.Rule, history revisions.History, current *revisions.Revision, request delivery.Request, now time.Time) ([]revisions.Revision, error) {
	changed, err := request.Apply(rule.Stages, history, current, now)
	if err != nil || request.Delivers() == 0 {
		return changed, err
	}
	revision := history.Numbered(request.Delivers())
	if lacks := o.RevisionLacks(rule, revision); lacks.What != "" && revision.Verdict != revisions.Delivered && revision.Verdict != revisions.Delivering {
		return nil, fmt.Errorf("revision %d has %s; run `headwater approve %s`", revision.Number, lacks.What, rule.Name)
	}
	if rule.Validator == nil {
		return changed, nil
	}
	if invalid := rule.Validator.Judge(revision.Content, now, now).String(); invalid != "" {
		return nil, fmt.Errorf("revision %d is not valid: %s", revision.Number, invalid)
	}
	return changed, nil
}

// NotAtAssigned returns the targets of a rule's source whose clone is not of the
// revision that it gets, or still of a rule whose history this one took over.
func (o *Reader) NotAtAssigned(rule spec.Rule, source *object.Full) []object.Ref {
	history := o.Revisions.History(revisions.Key{Rule: rule.Name, Source: source.Ref()})
	return slices.DeleteFunc(o.Targets(rule, source.Ref()), func(target object.Ref) bool {
		namespace, found := o.Caches.Namespaces.Get("", target.Namespace)
		if !found {
			return true
		}
		clone := delivery.Clone{
			Namespace: namespace.Name, Stage: rule.Stages.Of(namespace.Name, namespace.Labels), Has: o.held(&rule, source, history, target),
		}
		revision := delivery.Assign(rule.Stages, history, clone)
		return revision == nil || revision == clone.Has && o.isOf(rule.Name, target)
	})
}

// isOf reports whether the clone at target says that it is of the rule.
func (o *Reader) isOf(rule string, target object.Ref) bool {
	clone, found := o.Caches.Clones[target.Kind].Get(target.Namespace, target.Name)
	if !found {
		return false
	}
	marks, ours := mark.Of(clone)
	return ours && marks.Rule == rule
}

// TargetsAt returns the targets of a rule's source whose clone says that it has that
// revision.
func (o *Reader) TargetsAt(rule spec.Rule, source object.Ref, number int) []object.Ref {
	return slices.DeleteFunc(o.Targets(rule, source), func(target object.Ref) bool { return o.namedAt(target) != number })
}

// withContent returns source with the content of a revision of it.
func withContent(source *object.Full, revision *revisions.Revision) *object.Full {
	revised := *source
	revised.Content, revised.Digests = revision.Content, revision.Digests
	return &revised
}

// namedAt returns the number of the revision that the clone at target says it was
// written from; 0 if there is no such clone, or it does not say.
func (o *Reader) namedAt(target object.Ref) int {
	clone, found := o.Caches.Clones[target.Kind].Get(target.Namespace, target.Name)
	if !found || !mark.IsMarked(clone) {
		return 0
	}
	return revisionOf(clone)
}

// revisionOf returns the number of the revision that clone says it was written from;
// 0 if it does not say.
func revisionOf(clone *object.Digested) int {
	number, err := strconv.Atoi(clone.Annotations[mark.Revision])
	if err != nil {
		return 0
	}
	return number
}
