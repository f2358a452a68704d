package reload

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/ptr"
)

// echoes remember what was written until the caches show it, so that a
// consumer that is looked at again meanwhile is not patched twice.
type echoes struct{ written sync.Map }

type echo struct {
	uid             types.UID
	resourceVersion string
	annotations     map[string]*string
}

// expect remembers that these annotations of k were set, those with a nil
// value removed.
func (e *echoes) expect(k key, uid types.UID, resourceVersion string, annotations map[string]*string) {
	e.written.Store(k, &echo{uid, resourceVersion, annotations})
}

// read returns the annotation of the cached object meta, or what was written
// after that.
func (e *echoes) read(k key, meta metav1.Object, annotation string) string {
	value, _ := e.written.Load(k)
	last, waiting := value.(*echo)
	if !waiting {
		return meta.GetAnnotations()[annotation]
	}
	if !e.waiting(k, meta) {
		e.written.CompareAndDelete(k, value)
		return meta.GetAnnotations()[annotation]
	}
	if set, written := last.annotations[annotation]; written {
		return ptr.Deref(set, "")
	}
	return meta.GetAnnotations()[annotation]
}

// waiting reports whether the cached object meta is older than what was written
// of k.
func (e *echoes) waiting(k key, meta metav1.Object) bool {
	value, _ := e.written.Load(k)
	last, written := value.(*echo)
	return written && last.uid == meta.GetUID() && older(meta.GetResourceVersion(), last.resourceVersion)
}

// forget drops what is remembered of a consumer that is gone.
func (e *echoes) forget(k key) { e.written.Delete(k) }

func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
