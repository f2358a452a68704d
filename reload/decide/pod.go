package decide

import (
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// KubeletSync is the time after which every kubelet has updated a changed volume by
// itself. Kubelets sync every 60 to 90 seconds.
const KubeletSync = 2 * time.Minute

// Pod decides whether to make the kubelet refresh the volumes of pod now. now is
// compared with the API server's clock.
func Pod(hasher *digest.Hasher, pod *workload.Pod, stored string, inputs []Input, now time.Time) Decision {
	if !pod.Running() {
		return Decision{Step: spec.StepNothing, Reason: spec.ReasonNotRunning}
	}
	known, _ := parseStored(hasher, stored)
	volumes := entriesOf(hasher, pod.UID, known, Filter(inputs, Input.refreshes))
	next, differing := compare(hasher, known, volumes)
	for _, e := range volumes {
		_, had := known.entries[e.id]
		if !had && isStale(pod, e.Input, now) {
			differing = append(differing, e)
		}
	}
	changed := inputsOf(differing)
	if len(changed) == 0 {
		return Decision{Step: spec.StepNothing, Reason: spec.ReasonUnchanged}
	}
	// Keep checksums of objects that cannot be compared now, such as deleted ones: they
	// may be recreated with the same data.
	for id, sum := range known.entries {
		addIfAbsent(next, id, sum)
	}
	return Decision{
		Step: spec.StepRefresh, Reason: spec.ReasonChanged,
		Rule: changed[0].Rule, Changed: Names(changed), Causes: CausesOf(changed), Baseline: next.String(), Posts: postsOf(changed),
	}
}

// Confirm decides whether to make the kubelet refresh pod once more. The kubelet
// watches pods and objects separately: if it sees the pod's annotation first, it writes
// the old data. confirmed is what was already confirmed. last is the refresh if it is
// known; otherwise the recently changed objects say what it was for.
func Confirm(pod *workload.Pod, stored, confirmed string, inputs []Input, last Decision, now time.Time) Decision {
	recent := Filter(inputs, func(c Input) bool {
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

// postsOf returns the requests that the rules of the changed objects ask for, each
// once.
func postsOf(changed []Input) []spec.HTTPPost {
	var posts []spec.HTTPPost
	for _, c := range changed {
		if c.Post != nil {
			posts = EachOnce(posts, []spec.HTTPPost{*c.Post})
		}
	}
	return posts
}

// EachOnce appends to posts those of more that it does not contain.
func EachOnce(posts, more []spec.HTTPPost) []spec.HTTPPost {
	for _, post := range more {
		if !slices.Contains(posts, post) {
			posts = append(slices.Clip(posts), post)
		}
	}
	return posts
}

// Replaces reports whether a restart replaces pod: one that is due for its owner, or a
// recent one that pod is older than.
func Replaces(pod *workload.Pod, due Decision, restartedAt, now time.Time) bool {
	// The API server records the age of a pod in whole seconds.
	older := pod.CreationTimestamp.Time.Before(restartedAt.Truncate(time.Second))
	late := !restartedAt.After(now) && now.Sub(restartedAt) <= KubeletSync // another leader's clock may run ahead
	return due.Step == spec.StepRestart || older && late
}

// isStale decides for a volume without a recorded checksum. It may hold old data if its
// keys changed during the pod's life, within KubeletSync.
func isStale(pod *workload.Pod, c Input, now time.Time) bool {
	return !c.KeysChangedAt.IsZero() &&
		!c.KeysChangedAt.Before(pod.CreationTimestamp.Truncate(time.Second)) &&
		now.Sub(c.KeysChangedAt) <= KubeletSync
}
