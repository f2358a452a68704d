package register

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// content compares and copies the fields that Headwater manages in objects of
// one kind. The managed label and the owner references are handled separately.
// Other labels and annotations are left unchanged.
type content[T clusterObject] struct {
	equal      func(a, b T) bool
	copyFields func(to, from T)
}

// contentOf returns the content for the field that the function points to.
func contentOf[T clusterObject, C any](field func(T) *C) content[T] {
	return content[T]{
		equal:      func(a, b T) bool { return equality.Semantic.DeepEqual(field(a), field(b)) },
		copyFields: func(to, from T) { *field(to) = *field(from) },
	}
}

// same reports whether live is in the desired state.
func (c content[T]) same(live, desired T) bool {
	return c.equal(live, desired) && live.GetLabels()[mark.ManagedByLabel] == desired.GetLabels()[mark.ManagedByLabel] &&
		equality.Semantic.DeepEqual(live.GetOwnerReferences(), desired.GetOwnerReferences())
}

// merged returns a copy of live with the managed fields of desired.
func (c content[T]) merged(live, desired T) T {
	merged, _ := live.DeepCopyObject().(T)
	c.copyFields(merged, desired)
	labels := maps.Clone(live.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, desired.GetLabels())
	merged.SetLabels(labels)
	merged.SetOwnerReferences(desired.GetOwnerReferences())
	return merged
}
