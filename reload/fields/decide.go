package fields

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// The steps about a target whose fields are set.
const (
	// StepSet writes the values, and gives back what is no longer wanted.
	StepSet spec.Step = "Set"
	// StepRelease removes everything that the rule had set.
	StepRelease spec.Step = "GiveBack"
)

// The reasons of a targetDecision, beside ReasonUnchanged and ReasonMissing.
const (
	// ReasonDiffers: a field does not hold the value of its key.
	ReasonDiffers spec.Reason = "Differs"
	// ReasonUnwanted: a field is set that the rule no longer names.
	ReasonUnwanted spec.Reason = "Unwanted"
	// ReasonUnselected: the target lost the labels that the rule selects by.
	ReasonUnselected spec.Reason = "Unselected"
)

// targetDecision is what to do about one target of one rule.
type targetDecision struct {
	Step   spec.Step
	Reason spec.Reason
	// Missing is the key that is not there, for ReasonMissing.
	Missing string
}

// DecideTarget compares the fields of t with current, the rule's object in the
// same namespace; nil when there is none. What is missing is not data: the
// fields keep what they have.
func DecideTarget(rule string, wanted spec.CompiledTarget, t *SetTarget, current *object.Digested) targetDecision {
	had := t.Set[rule]
	switch {
	case !wanted.Selector.Matches(t.LabelSet()) && len(had) > 0:
		return targetDecision{Step: StepRelease, Reason: ReasonUnselected}
	case !wanted.Selector.Matches(t.LabelSet()), current == nil:
		return targetDecision{Step: spec.StepNothing, Reason: spec.ReasonUnchanged}
	}
	differs := false
	for _, field := range wanted.Fields {
		sum, found := current.Digests.Sum(field.Key)
		if !found {
			return targetDecision{Step: spec.StepNothing, Reason: spec.ReasonMissing, Missing: field.Key}
		}
		is, text := t.Values[field.Name()]
		differs = differs || !text || is != sum
	}
	named := func(path string) bool {
		return slices.ContainsFunc(wanted.Fields, func(field spec.FieldFrom) bool { return field.Name() == path })
	}
	switch {
	case differs:
		return targetDecision{Step: StepSet, Reason: ReasonDiffers}
	case slices.ContainsFunc(had, func(path string) bool { return !named(path) }):
		return targetDecision{Step: StepSet, Reason: ReasonUnwanted}
	}
	return targetDecision{Step: spec.StepNothing, Reason: spec.ReasonUnchanged}
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
			path, err := spec.ParseFieldPath(text)
			if err != nil { // metadata, which nobody may write as a target
				return holds(entry, asKeys(text))
			}
			return holds(entry, path.ManagedKeys())
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
func replacesList(entries []metav1.ManagedFieldsEntry, manager string, p spec.FieldPath) bool {
	return p.InList() && !slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && holds(entry, p.ManagedKeys())
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
