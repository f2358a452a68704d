package track

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// MissingObjects records, for each deleted object that still had consumers, the pods
// that existed at its deletion. Pods created later started without it. It is lost with
// the process, but the baselines of workloads record such pods by then.
type MissingObjects struct{ Pods sync.Map } // from object.Ref to map[types.UID]bool

// Begin records that an object was deleted while these pods consumed it.
func (a *MissingObjects) Begin(ref object.Ref, pods []*workload.Pod) {
	existing := map[types.UID]bool{}
	for _, pod := range pods {
		existing[pod.UID] = true
	}
	a.Pods.LoadOrStore(ref, existing)
}

// End records that the object exists again.
func (a *MissingObjects) End(ref object.Ref) { a.Pods.Delete(ref) }

// Has reports whether a deleted object has not been recreated.
func (a *MissingObjects) Has(ref object.Ref) bool { _, found := a.Pods.Load(ref); return found }

// StartedWithout reports whether any of pods was created after the object was deleted.
// It is false for nil MissingObjects.
func (a *MissingObjects) StartedWithout(ref object.Ref, pods []*workload.Pod) bool {
	if a == nil {
		return false
	}
	known, found := a.Pods.Load(ref)
	if !found {
		return false
	}
	existing, _ := known.(map[types.UID]bool)
	return slices.ContainsFunc(pods, func(pod *workload.Pod) bool { return !existing[pod.UID] })
}
