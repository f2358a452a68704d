package track

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
)

// UnreachedPods are the pods of one controller, or one pod without a controller, that
// nothing can restart and that consume a changed object. If the process ends before they
// are reported, `headwater consumers` still shows them.
type UnreachedPods struct {
	About   corev1.ObjectReference
	due     time.Time
	Pods    map[kinds.Key]bool
	Changed decide.KeysOf
}

// AddUnreached records that a pod, which is reported on about, consumes ref, whose keys changed.
// Changes until due are reported together.
func (m *Memory) AddUnreached(about corev1.ObjectReference, pod kinds.Key, ref object.Ref, keys []string, due time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one := m.unreached[about]
	if one == nil {
		one = &UnreachedPods{About: about, due: due, Pods: map[kinds.Key]bool{}, Changed: decide.KeysOf{}}
		m.unreached[about] = one
	}
	one.Pods[pod] = true
	one.Changed[ref] = append(one.Changed[ref], keys...)
}

// TakeUnreached removes and returns the pods whose report is due at now.
func (m *Memory) TakeUnreached(now time.Time) (due []*UnreachedPods) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for about, one := range m.unreached {
		if !now.Before(one.due) {
			due = append(due, one)
			delete(m.unreached, about)
		}
	}
	return due
}
