package reload

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/object"
)

// absences are of objects that went while somebody consumed them, and know which
// pods were there by then: who comes later, and may start without, does. They are
// lost with the process, but by then such pods are on record with their workloads.
type absences struct{ pods sync.Map } // from object.Ref to map[types.UID]bool

func (a *absences) begin(of object.Ref, pods []*Pod) {
	there := map[types.UID]bool{}
	for _, pod := range pods {
		there[pod.UID] = true
	}
	a.pods.LoadOrStore(of, there)
}

func (a *absences) end(of object.Ref) { a.pods.Delete(of) }

func (a *absences) has(of object.Ref) bool { _, found := a.pods.Load(of); return found }

// lacked reports whether any of pods came after the object went. Without absences
// nobody knows.
func (a *absences) lacked(of object.Ref, pods []*Pod) bool {
	if a == nil {
		return false
	}
	known, found := a.pods.Load(of)
	if !found {
		return false
	}
	there, _ := known.(map[types.UID]bool)
	return slices.ContainsFunc(pods, func(pod *Pod) bool { return !there[pod.UID] })
}
