package reload

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/digest"
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
	volumes := entriesOf(hasher, pod.UID, known, filter(consumed, Consumed.refreshes))
	next, differing := compare(hasher, known, volumes)
	for _, e := range volumes {
		_, had := known.entries[e.id]
		if !had && isStale(pod, e.Consumed, now) {
			differing = append(differing, e)
		}
	}
	changed := consumedBy(differing)
	if len(changed) == 0 {
		return Decision{Step: StepNothing, Reason: ReasonUnchanged}
	}
	// What is out of sight now, such as a deleted object, may come back as it was.
	for id, sum := range known.entries {
		keep(next, id, sum)
	}
	return Decision{
		Step: StepRefresh, Reason: ReasonChanged,
		Rule: changed[0].Rule, Changed: names(changed), Causes: causesOf(changed), Baseline: next.String(), Posts: postsOf(changed),
	}
}

// decideConfirm decides whether the kubelet is to be asked once more for what
// pod was refreshed for. It hears of the pod and of the object by two watches,
// and writes what was there before when the pod's comes first. confirmed is
// what it was asked for twice already. last is the refresh, if it is known;
// otherwise what changed of late says what it was for.
func decideConfirm(pod *Pod, stored, confirmed string, consumed []Consumed, last Decision, now time.Time) Decision {
	recent := filter(consumed, func(c Consumed) bool {
		return c.refreshes() && !c.ChangedAt.IsZero() && now.Sub(c.ChangedAt) <= kubeletSync
	})
	confirm := Decision{Step: StepConfirm, Reason: ReasonChanged, Baseline: stored}
	switch {
	case !pod.running() || stored == "" || stored == confirmed:
		return Decision{Step: StepNothing, Reason: ReasonUnchanged}
	case last.Baseline == stored:
		confirm.Rule, confirm.Changed, confirm.Posts = last.Rule, last.Changed, last.Posts
	case len(recent) > 0:
		confirm.Rule, confirm.Changed, confirm.Posts = recent[0].Rule, names(recent), postsOf(recent)
	default:
		return Decision{Step: StepNothing, Reason: ReasonUnchanged}
	}
	return confirm
}

// postsOf are the requests that the rules of what changed ask for, each once.
func postsOf(changed []Consumed) []HTTPPost {
	var posts []HTTPPost
	for _, c := range changed {
		if c.Post != nil {
			posts = eachOnce(posts, []HTTPPost{*c.Post})
		}
	}
	return posts
}

// eachOnce are the posts of both.
func eachOnce(posts, more []HTTPPost) []HTTPPost {
	for _, post := range more {
		if !slices.Contains(posts, post) {
			posts = append(slices.Clip(posts), post)
		}
	}
	return posts
}

// running reports whether the pod has, or is about to have, volumes on a node.
func (p *Pod) running() bool {
	return p.Bound && p.DeletionTimestamp == nil && p.Phase != corev1.PodSucceeded && p.Phase != corev1.PodFailed
}

// replaces reports whether a restart replaces pod: one that is due for the pod's
// owner, or one of late, which the pod is older than.
func replaces(pod *Pod, due Decision, restartedAt, now time.Time) bool {
	// The API server tells the age of a pod in whole seconds.
	older := pod.CreationTimestamp.Time.Before(restartedAt.Truncate(time.Second))
	late := !restartedAt.After(now) && now.Sub(restartedAt) <= kubeletSync // another leader's clock may be ahead
	return due.Step == StepRestart || older && late
}

// isStale decides for a volume of which nothing is on record: it may hold old
// data when the keys that it shows changed in the pod's life, but no longer than
// the kubelet takes to see that by itself.
func isStale(pod *Pod, c Consumed, now time.Time) bool {
	return !c.KeysChangedAt.IsZero() &&
		!c.KeysChangedAt.Before(pod.CreationTimestamp.Truncate(time.Second)) &&
		now.Sub(c.KeysChangedAt) <= kubeletSync
}
