package reload

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
)

// The steps about a target whose fields are set.
const (
	// StepSet writes the values, and gives back what is no longer wanted.
	StepSet Step = "Set"
	// StepGiveBack removes everything that the rule had set.
	StepGiveBack Step = "GiveBack"
)

// The reasons of a targetDecision, beside ReasonUnchanged and ReasonMissing.
const (
	// ReasonDiffers: a field does not hold the value of its key.
	ReasonDiffers Reason = "Differs"
	// ReasonUnwanted: a field is set that the rule no longer names.
	ReasonUnwanted Reason = "Unwanted"
	// ReasonUnselected: the target lost the labels that the rule selects by.
	ReasonUnselected Reason = "Unselected"
)

// targetDecision is what to do about one target of one rule.
type targetDecision struct {
	Step   Step
	Reason Reason
	// Missing is the key that is not there, for ReasonMissing.
	Missing string
}

// decideTarget compares the fields of t with current, the rule's object in the
// same namespace; nil when there is none. What is missing is not data: the
// fields keep what they have.
func decideTarget(rule string, wanted target, t *SetTarget, current *object.Digested) targetDecision {
	had := t.Set[rule]
	switch {
	case !wanted.selector.Matches(t.labels()) && len(had) > 0:
		return targetDecision{Step: StepGiveBack, Reason: ReasonUnselected}
	case !wanted.selector.Matches(t.labels()), current == nil:
		return targetDecision{Step: StepNothing, Reason: ReasonUnchanged}
	}
	differs := false
	for _, field := range wanted.fields {
		sum, found := current.Digests.Sum(field.key)
		if !found {
			return targetDecision{Step: StepNothing, Reason: ReasonMissing, Missing: field.key}
		}
		is, text := t.Values[field.name()]
		differs = differs || !text || is != sum
	}
	named := func(path string) bool {
		return slices.ContainsFunc(wanted.fields, func(field fieldFrom) bool { return field.name() == path })
	}
	switch {
	case differs:
		return targetDecision{Step: StepSet, Reason: ReasonDiffers}
	case slices.ContainsFunc(had, func(path string) bool { return !named(path) }):
		return targetDecision{Step: StepSet, Reason: ReasonUnwanted}
	}
	return targetDecision{Step: StepNothing, Reason: ReasonUnchanged}
}

// holders returns who else's configuration holds one of paths, so that it would
// be written again: a field manager that applies, and is not one of ours. What
// was edited or patched is no such claim. Field ownership is described in
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management.
func holders(entries []metav1.ManagedFieldsEntry, ours func(manager string) bool, paths []string) []string {
	var found []string
	for _, entry := range entries {
		if ours(entry.Manager) || entry.Operation != metav1.ManagedFieldsOperationApply {
			continue
		}
		if slices.ContainsFunc(paths, func(text string) bool {
			path, err := parseFieldPath(text)
			if err != nil { // metadata, which nobody may write as a target
				return holds(entry, asKeys(text))
			}
			return holds(entry, path.managedKeys())
		}) {
			found = append(found, entry.Manager)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func asKeys(path string) []string {
	var keys []string
	for key := range strings.SplitSeq(path, ".") {
		keys = append(keys, "f:"+key)
	}
	return keys
}

// replacesList reports whether the API server treats a list on the path p as one
// value, without keys for its elements. The manager that applied p then owns the
// whole list, with the elements of others.
func replacesList(entries []metav1.ManagedFieldsEntry, manager string, p fieldPath) bool {
	return p.inList() && !slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && holds(entry, p.managedKeys())
	})
}

// holds reports whether the entry has the field that keys lead to.
func holds(entry metav1.ManagedFieldsEntry, keys []string) bool {
	var fields map[string]any
	if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
		return false
	}
	for _, key := range keys {
		next, found := fields[key].(map[string]any)
		if !found {
			return false
		}
		fields = next
	}
	return true
}
