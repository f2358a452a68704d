package reload

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// echoes remember what was written until the caches show it, so that a
// consumer that is looked at again meanwhile is not patched twice.
type echoes struct{ written sync.Map }

type echo struct {
	uid             types.UID
	resourceVersion string
	value           string
}

// expect remembers that the annotation of k was set to value.
func (e *echoes) expect(k key, uid types.UID, resourceVersion, value string) {
	e.written.Store(k, echo{uid, resourceVersion, value})
}

// read returns the annotation of the cached object meta, or what was written
// after that.
func (e *echoes) read(k key, meta metav1.Object, annotation string) string {
	value, _ := e.written.Load(k)
	last, waiting := value.(echo)
	if waiting && last.uid == meta.GetUID() && older(meta.GetResourceVersion(), last.resourceVersion) {
		return last.value
	}
	if waiting {
		e.written.Delete(k)
	}
	return meta.GetAnnotations()[annotation]
}

// forget drops what is remembered of a consumer that is gone.
func (e *echoes) forget(k key) { e.written.Delete(k) }

func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
