package reload

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/object"
)

// unreached remembers the pods that nothing can restart, and that consume an
// object which was seen to change, until that was reported. It is lost with the
// process: a start reports nothing, and `headwater consumers` shows such pods.
type unreached struct {
	mu      sync.Mutex
	waiting map[corev1.ObjectReference]*unreachedPods
}

// unreachedPods are those of one controller, or one pod that has none.
type unreachedPods struct {
	about   corev1.ObjectReference
	due     time.Time
	pods    map[key]bool
	changed keysOf
}

// maxUnreachedTold bounds the Events that are recorded at once. The Event
// Reloaded of the object that changed counts all.
const maxUnreachedTold = 100

// add notes that a pod, of which people hear through about, consumes ref, of which
// these keys changed. What changes until due is reported together.
func (u *unreached) add(about corev1.ObjectReference, pod key, ref object.Ref, keys []string, due time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	one := u.waiting[about]
	if one == nil {
		one = &unreachedPods{about: about, due: due, pods: map[key]bool{}, changed: keysOf{}}
		if u.waiting == nil {
			u.waiting = map[corev1.ObjectReference]*unreachedPods{}
		}
		u.waiting[about] = one
	}
	one.pods[pod] = true
	one.changed[ref] = append(one.changed[ref], keys...)
}

// take returns what is due at now.
func (u *unreached) take(now time.Time) (due []*unreachedPods) {
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

// noteUnreached notes the pods that consume ref and that nothing can restart.
func (c *controller) noteUnreached(ref object.Ref, keys []string, governing ...Rule) {
	if len(keys) == 0 {
		return
	}
	due := c.now().Add(longestDebounce(governing))
	for _, pod := range c.consumers.podsUsing(ref) {
		if about, is := c.consumers.untemplated(pod); is && pod.running() {
			c.unreached.add(about, pod.key(), ref, keys, due)
		}
	}
}

// tellUnreached reports what is due.
func (c *controller) tellUnreached() {
	told := 0
	for _, one := range c.unreached.take(c.now()) {
		read := c.readBefore(one)
		if len(read) == 0 {
			continue
		}
		if c.report.tellNotRestarted(one.about, read, told < maxUnreachedTold) {
			told++
		}
	}
}

// readBefore is what pods of one read at their start, before it changed. The pods
// of one controller are taken to be alike.
func (c *controller) readBefore(one *unreachedPods) []Consumed {
	g, err := c.gatherer()
	if err != nil {
		return nil // no data is known, so nothing is known to have changed
	}
	for k := range one.pods {
		pod, found := c.consumers.pods.Get(k.namespace, k.name)
		if !found {
			continue
		}
		if read := unreachedBy(pod, c.decider().consumedByPod(pod, g), one.changed); len(read) > 0 {
			return read
		}
	}
	return nil
}

// notRestarted is about what consumes data that changed, and cannot be restarted.
func notRestarted(about corev1.ObjectReference, read []Consumed) kube.Event {
	return kube.Event{
		About: &about, Warning: true, Rule: firstRule(read), Reason: "NotRestarted", Action: "Restart",
		Note: "Not restarted, though what it read at its start has changed: " + someOf(names(read), maxNamed) + ". " + replaceIt(about),
	}
}

// replaceIt says how people have the new data read.
func replaceIt(about corev1.ObjectReference) string {
	switch kind := keyAbout(about).kind; kind {
	case KindPod:
		return "It has no controller that would replace it: delete and recreate the Pod"
	case "Job.batch":
		return "The pod template of a Job cannot be changed: delete and recreate the Job if its pods need the new data"
	case "ReplicaSet.apps", "ReplicationController":
		return "A changed pod template replaces none of its pods: delete them, and it creates new ones"
	default:
		return "Headwater knows no pod template of a " + string(kind) + ": delete its pods, and it creates new ones; " +
			"or, if the kind holds a pod template, add it to reload.workloads in Headwater's configuration"
	}
}
