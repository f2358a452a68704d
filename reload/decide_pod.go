package reload

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/object"
)

// kubeletSync is the time after which every kubelet has rewritten a changed
// volume by itself: it looks every 60 to 90 seconds.
const kubeletSync = 2 * time.Minute

// decidePod decides whether the kubelet is to be asked to rewrite the volumes
// of pod. now is compared with the API server's clock.
func decidePod(hasher *digest.Hasher, pod *Pod, stored string, consumed []Consumed, now time.Time) Decision {
	if !pod.running() {
		return Decision{Step: StepNothing, Reason: ReasonNotRunning}
	}
	known, _ := recall(hasher, stored)
	volumes := refreshable(pod, consumed)
	next, changed := compare(hasher, pod.UID, known, volumes)
	for _, c := range volumes {
		_, had := known.entries[identify(hasher, pod.UID, c.Reference)]
		if !had && isStale(pod, c, now) {
			changed = append(changed, c)
		}
	}
	if len(changed) == 0 {
		return Decision{Step: StepNothing, Reason: ReasonUnchanged}
	}
	// What is out of sight now, such as a deleted object, may come back as it was.
	for id, sum := range known.entries {
		keep(next, id, sum)
	}
	return Decision{
		Step: StepRefresh, Reason: ReasonChanged,
		Rule: changed[0].Rule, Changed: names(changed), Baseline: next.String(),
	}
}

// running reports whether the pod has, or is about to have, volumes on a node.
func (p *Pod) running() bool {
	return p.Bound && p.DeletionTimestamp == nil && p.Phase != corev1.PodSucceeded && p.Phase != corev1.PodFailed
}

// refreshable leaves out the objects for whose sake the pod's owner is
// restarted, and with it the pod.
func refreshable(pod *Pod, consumed []Consumed) []Consumed {
	var replaced []object.Ref
	if pod.Controlled {
		for _, c := range filter(consumed, Consumed.restarts) {
			replaced = append(replaced, c.Object)
		}
	}
	return filter(consumed, func(c Consumed) bool { return c.refreshes() && !slices.Contains(replaced, c.Object) })
}

// isStale decides for a volume of which nothing is on record: it may hold old
// data when its object changed in the pod's life, but no longer than the
// kubelet takes to see that by itself.
func isStale(pod *Pod, c Consumed, now time.Time) bool {
	return !c.ChangedAt.IsZero() &&
		!c.ChangedAt.Before(pod.CreationTimestamp.Truncate(time.Second)) &&
		now.Sub(c.ChangedAt) <= kubeletSync
}
