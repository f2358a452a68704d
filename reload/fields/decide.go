package fields

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// The steps for a target whose fields are set.
const (
	// StepSet writes the values, and releases fields that the rule no longer sets.
	StepSet spec.Step = "Set"
	// stepRelease removes all fields that the rule has set.
	stepRelease spec.Step = "GiveBack"
)

// The reasons of a targetDecision, besides ReasonUnchanged and ReasonMissing.
const (
	// reasonDiffers: a field does not hold the value of its key.
	reasonDiffers spec.Reason = "Differs"
	// reasonUnwanted: a field is set that the rule no longer names.
	reasonUnwanted spec.Reason = "Unwanted"
	// reasonUnselected: the rule's selector no longer matches the target.
	reasonUnselected spec.Reason = "Unselected"
)

// targetDecision is what to do about one target of one rule.
type targetDecision struct {
	Step   spec.Step
	Reason spec.Reason
	// Missing is the missing key, for ReasonMissing.
	Missing string
}

// DecideTarget compares the fields of t with current, the rule's object in the same
// namespace; nil if there is none. If the object or a key is missing, fields keep their
// values.
func DecideTarget(rule string, wanted spec.CompiledTarget, t *SetTarget, current *object.Digested) targetDecision {
	had := t.Set[rule]
	switch {
	case !wanted.Selector.Matches(t.LabelSet()) && len(had) > 0:
		return targetDecision{Step: stepRelease, Reason: reasonUnselected}
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
		return targetDecision{Step: StepSet, Reason: reasonDiffers}
	case slices.ContainsFunc(had, func(path string) bool { return !named(path) }):
		return targetDecision{Step: StepSet, Reason: reasonUnwanted}
	}
	return targetDecision{Step: spec.StepNothing, Reason: spec.ReasonUnchanged}
}

// otherAppliers returns the field managers, except ours, whose applied configuration
// has one of paths, so that they would write it again. Managers that edited or patched
// a field do not count. See
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management.
func otherAppliers(entries []metav1.ManagedFieldsEntry, ours func(manager string) bool, paths []string) []string {
	var found []string
	for _, entry := range entries {
		if ours(entry.Manager) || entry.Operation != metav1.ManagedFieldsOperationApply {
			continue
		}
		if slices.ContainsFunc(paths, func(text string) bool {
			path, err := spec.ParseFieldPath(text)
			if err != nil { // a metadata path, which no target may set
				return ownsField(entry, asKeys(text))
			}
			return ownsField(entry, path.ManagedKeys())
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

// replacesList reports whether the API server treats a list on path p as one value,
// without keys for its elements. The manager that applied p then owns the whole list,
// including elements of others.
func replacesList(entries []metav1.ManagedFieldsEntry, manager string, p spec.FieldPath) bool {
	return p.InList() && !slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && ownsField(entry, p.ManagedKeys())
	})
}

// ownsField reports whether the entry owns the field that keys lead to.
func ownsField(entry metav1.ManagedFieldsEntry, keys []string) bool {
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
