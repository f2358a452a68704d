package decide

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/propagation"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// Fields of object metadata that are protected.
const (
	fieldLabels      = "metadata.labels"
	fieldAnnotations = "metadata.annotations"
	fieldOwners      = "metadata.ownerReferences"
)

// changedFields returns the protected fields that differ in meaning between
// before and after. It is nil if either is nil. It compares values but never
// returns them.
//
// The protected labels are Headwater's own, those in selectorKeys, and the
// copied ones. Selector keys count because removing the selected label would
// end the protection.
//
// Adding a finalizer is a change, because it blocks deletion. Removing one is
// not, because controllers must always be able to release an object.
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

// protectedChanges returns the fields in request that the rule protects against
// operation. If the rule protects only against deletion, two updates amount to
// one: a change of the owner references, because the garbage collector may then
// delete the object, and a label change after which the rule no longer selects
// the object, because sync treats that as a deletion.
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

// sameMarks reports whether both maps have the same headwater.dev/ keys and
// values.
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

// sameCopied reports whether both maps agree in all keys that match globs.
func sameCopied(before, after map[string]string, globs []string) bool {
	other := func(of, than map[string]string) bool {
		for key, value := range of {
			if got, found := than[key]; (!found || got != value) && propagation.Copies(globs, key) {
				return true
			}
		}
		return false
	}
	return !other(before, after) && !other(after, before)
}

// owner is the value of an owner reference.
type owner struct {
	uid                    types.UID
	apiVersion, kind, name string
	controller, block      bool
}

// owners counts equal references, so that a comparison ignores their order.
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

// releasesOwners reports whether the request only removes owner references or
// clears blockOwnerDeletion, and comes from a garbage collector. Denying that
// would leave the owner in deletion forever.
func releasesOwners(request Request, changed []string, world World) bool {
	if !isGarbageCollector(request.User, world) || !slices.Equal(changed, []string{fieldOwners}) {
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

// judgeContent denies a request that gives a source of rule content that fails the
// rule's checks. That also denies users that the rule allows: they must not break
// all clones by mistake. A request that leaves the content as it is passes,
// so that a source that is invalid already can lose its finalizers.
func judgeContent(request Request, rule spec.Rule, world World) (denied Verdict, isDenied bool) {
	if rule.Validator == nil || !setsContent(request, rule) {
		return Verdict{}, false
	}
	now := world.Now()
	problems := rule.Validator.Judge(request.New.Content, now, now).String()
	if problems == "" {
		return Verdict{}, false
	}
	return refuse(rule, ReasonInvalidContent, invalidContentMessage(rule, request.Object(), problems)), true
}

func invalidContentMessage(rule spec.Rule, object, problems string) string {
	return fmt.Sprintf("headwater: %s would have content that fails the checks of rule %q: %s", object, rule.Name, problems)
}

// setsContent reports whether the object is a source of rule after the request,
// with content that this source did not have before.
func setsContent(request Request, rule spec.Rule) bool {
	ref, known := request.Ref()
	if !known || request.New == nil || request.Operation == spec.Delete || !rule.Selects(ref, request.New.Labels) {
		return false
	}
	before := request.Old
	return request.Operation == spec.Create || before == nil || !rule.Selects(ref, before.Labels) || !sameData(before.Content, request.New.Content)
}

func sameData(a, b object.Content) bool {
	return maps.EqualFunc(a.Data, b.Data, bytes.Equal) && maps.EqualFunc(a.BinaryData, b.BinaryData, bytes.Equal)
}
