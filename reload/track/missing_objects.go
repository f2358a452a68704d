package track

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// MissingObjects are of objects that went while somebody consumed them, and know which
// pods were there by then: who comes later, and may start without, does. They are
// lost with the process, but by then such pods are on record with their workloads.
type MissingObjects struct{ Pods sync.Map } // from object.Ref to map[types.UID]bool

// Begin records that an object was deleted while these pods consumed it.
func (a *MissingObjects) Begin(of object.Ref, pods []*workload.Pod) {
	there := map[types.UID]bool{}
	for _, pod := range pods {
		there[pod.UID] = true
	}
	a.Pods.LoadOrStore(of, there)
}

// End records that the object exists again.
func (a *MissingObjects) End(of object.Ref) { a.Pods.Delete(of) }

// Has reports whether a deleted object has not been recreated.
func (a *MissingObjects) Has(of object.Ref) bool { _, found := a.Pods.Load(of); return found }

// StartedWithout reports whether any of pods came after the object went. Without absences
// nobody knows.
func (a *MissingObjects) StartedWithout(of object.Ref, pods []*workload.Pod) bool {
	if a == nil {
		return false
	}
	known, found := a.Pods.Load(of)
	if !found {
		return false
	}
	there, _ := known.(map[types.UID]bool)
	return slices.ContainsFunc(pods, func(pod *workload.Pod) bool { return !there[pod.UID] })
}
