package decide

import (
	"bytes"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/carry"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// Protected fields of an object's metadata.
const (
	fieldLabels      = "metadata.labels"
	fieldAnnotations = "metadata.annotations"
	fieldOwners      = "metadata.ownerReferences"
)

// changedFields names the protected fields in which after differs in meaning from
// before; nil when either is absent. Values are compared, never returned.
// Protected are our labels, those of SelectorKeys, since whoever takes off the
// label that a rule selects by could edit freely after, and what is copied.
//
// Removing a finalizer is no change: controllers must always be able to let
// go. Adding one is, since it would pin the object.
func changedFields(before, after *object.Full, selectorKeys []string, copied spec.Copied) []string {
	if before == nil || after == nil {
		return nil
	}
	var changed []string
	note := func(field string, same bool) {
		if !same {
			changed = append(changed, field)
		}
	}
	note("data", maps.EqualFunc(before.Content.Data, after.Content.Data, bytes.Equal))
	note("binaryData", maps.EqualFunc(before.Content.BinaryData, after.Content.BinaryData, bytes.Equal))
	note("type", before.Content.Type == after.Content.Type)
	note("immutable", before.Content.Immutable == after.Content.Immutable)
	note(fieldLabels, sameMarks(before.Labels, after.Labels) && sameEntries(before.Labels, after.Labels, selectorKeys) &&
		sameCopied(before.Labels, after.Labels, copied.Labels))
	note(fieldAnnotations, sameMarks(before.Annotations, after.Annotations) &&
		sameCopied(before.Annotations, after.Annotations, copied.Annotations))
	note(fieldOwners, maps.Equal(owners(before.OwnerReferences), owners(after.OwnerReferences)))
	note("metadata.finalizers", !slices.ContainsFunc(after.Finalizers, func(finalizer string) bool {
		return !slices.Contains(before.Finalizers, finalizer)
	}))
	return changed
}

// protectedChanges names what request changes of what the rule protects from operation.
// Where it protects from deletions alone, an update counts that has somebody else
// delete the object, as the garbage collector does by its owners, whoever of them
// is there, or that takes it from the rule, which is a deletion to sync.
func protectedChanges(r spec.Rule, request Request, operation spec.Operation) []string {
	changed := changedFields(request.Old, request.New, r.SelectorKeys(), r.Copied)
	if !r.OnlyDeletionCounts(operation) {
		return changed
	}
	ref, _ := request.Ref()
	taken := r.Selects(ref, request.Old.Labels) && !r.Selects(ref, request.New.Labels)
	return slices.DeleteFunc(changed, func(field string) bool {
		return field != fieldOwners && (field != fieldLabels || !taken)
	})
}

// sameMarks compares what of labels or annotations is Headwater's.
func sameMarks(before, after map[string]string) bool {
	return maps.Equal(mark.Ours(before), mark.Ours(after))
}

func sameEntries(before, after map[string]string, keys []string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool {
		old, had := before[key]
		new, has := after[key]
		return had != has || old != new
	})
}

// sameCopied compares what of labels or annotations globs copy to clones.
func sameCopied(before, after map[string]string, globs []string) bool {
	other := func(of, than map[string]string) bool {
		for key, value := range of {
			if got, found := than[key]; (!found || got != value) && carry.Over(globs, key) {
				return true
			}
		}
		return false
	}
	return !other(before, after) && !other(after, before)
}

// owner is an owner reference by value.
type owner struct {
	uid                    types.UID
	apiVersion, kind, name string
	controller, block      bool
}

// owners counts equal references: their order means nothing.
func owners(references []metav1.OwnerReference) map[owner]int {
	counts := make(map[owner]int, len(references))
	for _, reference := range references {
		counts[owner{
			uid: reference.UID, apiVersion: reference.APIVersion, kind: reference.Kind, name: reference.Name,
			controller: reference.Controller != nil && *reference.Controller,
			block:      reference.BlockOwnerDeletion != nil && *reference.BlockOwnerDeletion,
		}]++
	}
	return counts
}

// releasesOwners reports whether the garbage collector drops owner references
// or ceases to block an owner's deletion, and nothing else. Refusing that
// would leave the owner in deletion for ever.
func releasesOwners(request Request, changed []string, world World) bool {
	if !isGarbageCollector(request.User.Name, world) || !slices.Equal(changed, []string{fieldOwners}) {
		return false
	}
	before := owners(request.Old.OwnerReferences)
	for after := range owners(request.New.OwnerReferences) {
		blocking := after
		blocking.block = true
		if before[after] == 0 && before[blocking] == 0 {
			return false
		}
	}
	return true
}
