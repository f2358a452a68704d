package track

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
)

// Unreached records pods that nothing can restart and that consume a changed object,
// until that is reported. It is lost with the process: `headwater consumers` still
// shows such pods.
type Unreached struct {
	mu      sync.Mutex
	waiting map[corev1.ObjectReference]*UnreachedPods
}

// UnreachedPods are the pods of one controller, or one pod without a controller.
type UnreachedPods struct {
	About   corev1.ObjectReference
	due     time.Time
	Pods    map[kinds.Key]bool
	Changed decide.KeysOf
}

// Add records that a pod, which is reported on about, consumes ref, whose keys changed.
// Changes until due are reported together.
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
