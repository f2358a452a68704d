package survey

import (
	"fmt"
	"slices"
	"strconv"
	"time"
	"weak"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/revisions"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// assign returns candidate with the content of the revision that target gets in place
// of the source's, and that revision; nil if candidate keeps the source's. A rule that
// keeps a history without a delivery follows its source, unless somebody rolled back.
func (o *Reader) assign(candidate plan.Candidate, target object.Ref, namespace *plan.Namespace) (plan.Candidate, *delivery.Revision) {
	rule := candidate.Rule
	if delivery.TooLarge(candidate.Source.Content, *rule.History) {
		return candidate, nil
	}
	history := o.Revisions.History(revisions.Key{Rule: rule.Name, Source: candidate.Ref})
	if rule.Stages == nil {
		pinned := history.Pinned()
		if pinned != nil {
			candidate.Source, candidate.Invalid = withContent(candidate.Source, pinned), ""
		}
		return candidate, pinned
	}
	stage := rule.Stages.Of(namespace.Name, namespace.Labels)
	revision := delivery.Assign(rule.Stages, history, stage, o.RevisionOf(rule.Name, target))
	if revision == nil {
		candidate.Unrecorded = true
		return candidate, nil
	}
	candidate.Source, candidate.Revision = withContent(candidate.Source, revision), revision.Number
	candidate.Invalid = "" // what is not valid was recorded as rejected
	return candidate, revision
}

// maxWanted is how many results of plan.NewWanted a Reader remembers.
const maxWanted = 1024

// wantedKey identifies what plan.NewWanted gets. It keeps no content in memory.
type wantedKey struct {
	rule     *spec.Rule
	source   weak.Pointer[object.Full]
	revision weak.Pointer[delivery.Revision]
}

// wanted returns plan.NewWanted of candidate, which is computed once and not for each
// target. source is the cached source, and revision what assign returned for it.
func (o *Reader) wanted(candidate plan.Candidate, source *object.Full, revision *delivery.Revision) *plan.Wanted {
	key := wantedKey{candidate.Rule, weak.Make(source), weak.Make(revision)}
	if known, found := o.wantedOf.Get(key); found {
		return known.(*plan.Wanted)
	}
	wanted := plan.NewWanted(candidate.Rule, candidate.Source, candidate.Revision)
	o.wantedOf.Add(key, wanted)
	return wanted
}

// Apply returns the revisions that request changes. The error says why it cannot be
// done. What fails the checks of rule is delivered by no request.
func (o *Reader) Apply(rule *spec.Rule, history delivery.History, current *delivery.Revision, request delivery.Request, now time.Time) ([]delivery.Revision, error) {
	changed, err := request.Apply(rule.Stages, history, current, now)
	if err != nil || request.Delivers() == 0 || rule.Validator == nil {
		return changed, err
	}
	revision := history.Numbered(request.Delivers())
	if invalid := problemsOf(rule.Validator, revision.Content, revision.Recorded); invalid != "" {
		return nil, fmt.Errorf("revision %d is not valid: %s", revision.Number, invalid)
	}
	return changed, nil
}

// NotAtAssigned returns the targets of a rule's source whose clone is not of the
// revision that it gets.
func (o *Reader) NotAtAssigned(rule spec.Rule, source object.Ref) []object.Ref {
	history := o.Revisions.History(revisions.Key{Rule: rule.Name, Source: source})
	return slices.DeleteFunc(o.Targets(rule, source), func(target object.Ref) bool {
		namespace, found := o.Caches.Namespaces.Get("", target.Namespace)
		if !found {
			return true
		}
		has := o.RevisionOf(rule.Name, target)
		revision := delivery.Assign(rule.Stages, history, rule.Stages.Of(namespace.Name, namespace.Labels), has)
		return revision == nil || revision.Number == has
	})
}

// TargetsAt returns the targets of a rule's source whose clone has that revision.
func (o *Reader) TargetsAt(rule spec.Rule, source object.Ref, number int) []object.Ref {
	return slices.DeleteFunc(o.Targets(rule, source), func(target object.Ref) bool {
		return o.RevisionOf(rule.Name, target) != number
	})
}

// withContent returns source with the content of a revision of it.
func withContent(source *object.Full, revision *delivery.Revision) *object.Full {
	revised := *source
	revised.Content, revised.Digests = revision.Content, revision.Digests
	return &revised
}

// RevisionOf returns the number of the revision that the clone of rule at target
// says it was written from; 0 if there is no such clone, or it does not say.
func (o *Reader) RevisionOf(rule string, target object.Ref) int {
	clone, found := o.Caches.Clones[target.Kind].Get(target.Namespace, target.Name)
	if !found {
		return 0
	}
	if marks, ours := mark.Of(clone); !ours || marks.Rule != rule {
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
