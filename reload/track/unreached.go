package track

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
)

// Unreached remembers the pods that nothing can restart, and that consume an
// object which was seen to change, until that was reported. It is lost with the
// process: a start reports nothing, and `headwater consumers` shows such pods.
type Unreached struct {
	mu      sync.Mutex
	waiting map[corev1.ObjectReference]*UnreachedPods
}

// UnreachedPods are those of one controller, or one pod that has none.
type UnreachedPods struct {
	About   corev1.ObjectReference
	due     time.Time
	Pods    map[kinds.Key]bool
	Changed decide.KeysOf
}

// Add notes that a pod, of which people hear through about, consumes ref, of which
// these keys changed. What changes until due is reported together.
func (u *Unreached) Add(about corev1.ObjectReference, pod kinds.Key, ref object.Ref, keys []string, due time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	one := u.waiting[about]
	if one == nil {
		one = &UnreachedPods{About: about, due: due, Pods: map[kinds.Key]bool{}, Changed: decide.KeysOf{}}
		if u.waiting == nil {
			u.waiting = map[corev1.ObjectReference]*UnreachedPods{}
		}
		u.waiting[about] = one
	}
	one.Pods[pod] = true
	one.Changed[ref] = append(one.Changed[ref], keys...)
}

// Take returns what is due at now.
func (u *Unreached) Take(now time.Time) (due []*UnreachedPods) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for about, one := range u.waiting {
		if !now.Before(one.due) {
			due = append(due, one)
			delete(u.waiting, about)
		}
	}
	return due
}
