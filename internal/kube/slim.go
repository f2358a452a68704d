package kube

import (
	"maps"
	"slices"
	"sync"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// slim answers as metav1.Object for what a cache asks. There are many of them,
// and a whole ObjectMeta takes 240 bytes.
type slim struct {
	metav1.Object // nil: nothing else is known

	Namespace, Name, ResourceVersion string
}

func slimOf(meta metav1.Object) slim {
	return slim{
		Namespace: unique.Make(meta.GetNamespace()).Value(), // shared by all that is in it
		Name:      meta.GetName(), ResourceVersion: meta.GetResourceVersion(),
	}
}

// GetNamespace implements metav1.Object.
func (s *slim) GetNamespace() string { return s.Namespace }

// GetName implements metav1.Object.
func (s *slim) GetName() string { return s.Name }

// GetResourceVersion implements metav1.Object.
func (s *slim) GetResourceVersion() string { return s.ResourceVersion }

// shapes lets the clones of one source share what is the same in all of them:
// marks and digests.
type shapes struct{ latest sync.Map }

type shape struct{ rule, source string }

// share replaces parts of clone by equal ones of the clone before it.
func (s *shapes) share(clone *object.Digested) {
	key := shape{clone.Annotations[mark.Rule], clone.Annotations[mark.Source]}
	known, found := s.latest.Swap(key, clone)
	other, ok := known.(*object.Digested)
	if !found || !ok {
		return
	}
	if maps.Equal(clone.Labels, other.Labels) {
		clone.Labels = other.Labels
	}
	if maps.Equal(clone.Annotations, other.Annotations) {
		clone.Annotations = other.Annotations
	}
	if slices.Equal(clone.Digests, other.Digests) {
		clone.Digests = other.Digests
	}
	clone.Type = unique.Make(clone.Type).Value()
}
