package register

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// content is what Headwater has a say in of its objects of one kind, beside
// their managed label and their owner. Labels and annotations of others stay.
type content[T clusterObject] struct {
	equal func(a, b T) bool
	take  func(to, from T)
}

// contentOf is the content that field points to.
func contentOf[T clusterObject, C any](field func(T) *C) content[T] {
	return content[T]{
		equal: func(a, b T) bool { return equality.Semantic.DeepEqual(field(a), field(b)) },
		take:  func(to, from T) { *field(to) = *field(from) },
	}
}

// same reports whether live is as desired says.
func (c content[T]) same(live, desired T) bool {
	return c.equal(live, desired) && live.GetLabels()[mark.ManagedByLabel] == desired.GetLabels()[mark.ManagedByLabel] &&
		equality.Semantic.DeepEqual(live.GetOwnerReferences(), desired.GetOwnerReferences())
}

// adapted is live as desired says.
func (c content[T]) adapted(live, desired T) T {
	adapted, _ := live.DeepCopyObject().(T)
	c.take(adapted, desired)
	labels := maps.Clone(live.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, desired.GetLabels())
	adapted.SetLabels(labels)
	adapted.SetOwnerReferences(desired.GetOwnerReferences())
	return adapted
}
