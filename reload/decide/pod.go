package decide

import (
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// KubeletSync is the time after which every kubelet has rewritten a changed
// volume by itself: it looks every 60 to 90 seconds.
const KubeletSync = 2 * time.Minute

// Pod decides whether the kubelet is to be asked to rewrite the volumes
// of pod. now is compared with the API server's clock.
func Pod(hasher *digest.Hasher, pod *workload.Pod, stored string, consumed []Input, now time.Time) Decision {
	if !pod.Running() {
		return Decision{Step: spec.StepNothing, Reason: spec.ReasonNotRunning}
	}
	known, _ := parseStored(hasher, stored)
	volumes := entriesOf(hasher, pod.UID, known, Filter(consumed, Input.refreshes))
	next, differing := compare(hasher, known, volumes)
	for _, e := range volumes {
		_, had := known.entries[e.id]
		if !had && isStale(pod, e.Input, now) {
			differing = append(differing, e)
		}
	}
	changed := consumedBy(differing)
	if len(changed) == 0 {
		return Decision{Step: spec.StepNothing, Reason: spec.ReasonUnchanged}
	}
	// What is out of sight now, such as a deleted object, may come back as it was.
	for id, sum := range known.entries {
		addIfAbsent(next, id, sum)
	}
	return Decision{
		Step: spec.StepRefresh, Reason: spec.ReasonChanged,
		Rule: changed[0].Rule, Changed: Names(changed), Causes: CausesOf(changed), Baseline: next.String(), Posts: postsOf(changed),
	}
}

// Confirm decides whether the kubelet is to be asked once more for what
// pod was refreshed for. It hears of the pod and of the object by two watches,
// and writes what was there before when the pod's comes first. confirmed is
// what it was asked for twice already. last is the refresh, if it is known;
// otherwise what changed of late says what it was for.
func Confirm(pod *workload.Pod, stored, confirmed string, consumed []Input, last Decision, now time.Time) Decision {
	recent := Filter(consumed, func(c Input) bool {
		return c.refreshes() && !c.ChangedAt.IsZero() && now.Sub(c.ChangedAt) <= KubeletSync
	})
	confirm := Decision{Step: spec.StepConfirm, Reason: spec.ReasonChanged, Baseline: stored}
	switch {
	case !pod.Running() || stored == "" || stored == confirmed:
		return Decision{Step: spec.StepNothing, Reason: spec.ReasonUnchanged}
	case last.Baseline == stored:
		confirm.Rule, confirm.Changed, confirm.Posts = last.Rule, last.Changed, last.Posts
	case len(recent) > 0:
		confirm.Rule, confirm.Changed, confirm.Posts = recent[0].Rule, Names(recent), postsOf(recent)
	default:
		return Decision{Step: spec.StepNothing, Reason: spec.ReasonUnchanged}
	}
	return confirm
}

// postsOf are the requests that the rules of what changed ask for, each once.
func postsOf(changed []Input) []spec.HTTPPost {
	var posts []spec.HTTPPost
	for _, c := range changed {
		if c.Post != nil {
			posts = EachOnce(posts, []spec.HTTPPost{*c.Post})
		}
	}
	return posts
}

// EachOnce are the posts of both.
func EachOnce(posts, more []spec.HTTPPost) []spec.HTTPPost {
	for _, post := range more {
		if !slices.Contains(posts, post) {
			posts = append(slices.Clip(posts), post)
		}
	}
	return posts
}

// Replaces reports whether a restart replaces pod: one that is due for the pod's
// owner, or one of late, which the pod is older than.
func Replaces(pod *workload.Pod, due Decision, restartedAt, now time.Time) bool {
	// The API server tells the age of a pod in whole seconds.
	older := pod.CreationTimestamp.Time.Before(restartedAt.Truncate(time.Second))
	late := !restartedAt.After(now) && now.Sub(restartedAt) <= KubeletSync // another leader's clock may be ahead
	return due.Step == spec.StepRestart || older && late
}

// IsStale decides for a volume of which nothing is on record: it may hold old
// data when the keys that it shows changed in the pod's life, but no longer than
// the kubelet takes to see that by itself.
func isStale(pod *workload.Pod, c Input, now time.Time) bool {
	return !c.KeysChangedAt.IsZero() &&
		!c.KeysChangedAt.Before(pod.CreationTimestamp.Truncate(time.Second)) &&
		now.Sub(c.KeysChangedAt) <= KubeletSync
}
