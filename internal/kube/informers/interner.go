package informers

import (
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"

	"github.com/headwater-k8s/headwater/internal/intern"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// minimalMeta implements the methods of metav1.Object that a cache calls. It saves
// memory: a whole ObjectMeta takes 240 bytes.
type minimalMeta struct {
	metav1.Object // nil: other methods panic

	Namespace, Name, ResourceVersion string
}

func minimalMetaOf(meta metav1.Object) minimalMeta {
	return minimalMeta{
		Namespace: intern.String(meta.GetNamespace()),
		Name:      meta.GetName(), ResourceVersion: meta.GetResourceVersion(),
	}
}

// GetNamespace implements metav1.Object.
func (s *minimalMeta) GetNamespace() string { return s.Namespace }

// GetName implements metav1.Object.
func (s *minimalMeta) GetName() string { return s.Name }

// GetResourceVersion implements metav1.Object.
func (s *minimalMeta) GetResourceVersion() string { return s.ResourceVersion }

// cloneInterner makes the clones of one source share what they have in common. It
// remembers that of the latest clone of each source by a weak pointer, for a bounded
// number of sources, so that forged marks cannot exhaust memory.
type cloneInterner struct{ latest *lru.Cache }

type cloneKey struct {
	rule   string
	source object.Ref
	place  object.Place
}

const maxKnownSources = 4096

func newCloneInterner() cloneInterner { return cloneInterner{lru.New(maxKnownSources)} }

// share replaces what clone has in common with the previous clone of its source.
func (s cloneInterner) share(clone *object.Digested) {
	clone.Namespace, clone.Name = intern.String(clone.Namespace), intern.String(clone.Name)
	marks, ours := mark.Of(clone)
	if !ours {
		return
	}
	key := cloneKey{marks.Rule, marks.Source, marks.Place}
	known, _ := s.latest.Get(key)
	pointer, _ := known.(weak.Pointer[object.Common])
	if other := pointer.Value(); other != nil && clone.Equal(other) {
		clone.Common = other
		return
	}
	s.latest.Add(key, weak.Make(clone.Common))
}
