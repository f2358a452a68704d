package gather

import (
	"slices"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/consumerhealth"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// clonePods are the running pods that use a clone, by the workload that is restarted for
// them. Those in bare have no pod template that references the clone.
type clonePods struct {
	of   map[kinds.Key][]*workload.Pod
	bare []*workload.Pod
}

// readClone is the clone whose readers are looked for, and which of its keys they read; nil means
// all. synced is true if every kubelet has what it holds.
type readClone struct {
	*object.Digested

	keys   []string
	synced bool
}

// ReadersOf finds the consumers of clone that read one of keys, or any if keys is nil. synced is
// true if this process knows what the clone holds for longer than decide.KubeletSync. g.Reading
// says whether caches that are needed are not synced.
func (g *Gatherer) ReadersOf(of *object.Digested, keys []string, synced bool) (readers []consumerhealth.Consumer) {
	clone, ref := readClone{of, keys, synced}, of.Ref()
	pods := g.podsOfClone(ref)
	seen := map[kinds.Key]bool{}
	for _, w := range g.Consumers.WorkloadsUsing(ref, g.Settings.Settings) {
		is := g.Consumers.RootOwner(w)
		top := is.Root.Key()
		g.Reading = g.Reading || is.NotSynced
		if is.NotSynced || seen[top] || is.Root.DeletionTimestamp != nil {
			continue
		}
		seen[top] = true
		if one, reads := g.workloadReader(is.Root, clone, pods.of[top]); reads {
			readers = append(readers, one)
			g.Reading = g.Reading || g.AwaitsObjects(top)
		}
	}
	for _, pod := range pods.bare {
		if one, reads := g.podReader(pod, clone); reads {
			readers = append(readers, one)
			g.Reading = g.Reading || g.AwaitsObjects(pod.Key())
		}
	}
	return readers
}

// podsOfClone returns the running pods that use ref.
func (g *Gatherer) podsOfClone(ref object.Ref) clonePods {
	pods := clonePods{of: map[kinds.Key][]*workload.Pod{}}
	for _, pod := range g.Consumers.PodsUsing(ref) {
		owner, owned := g.Consumers.OwnerOf(pod)
		switch {
		case !pod.Running():
		case !owned || !g.Consumers.FromTemplate(pod, ref):
			pods.bare = append(pods.bare, pod)
		default:
			top := g.Consumers.RootOwner(owner).Root.Key()
			pods.of[top] = append(pods.of[top], pod)
		}
	}
	return pods
}

// readInputs are the inputs of a consumer that are read from the clone, by what a change does.
type readInputs struct{ all, restarting, refreshing []decide.Input }

func readingOf(inputs []decide.Input, ref object.Ref, keys []string) (r readInputs) {
	for _, one := range inputs {
		if one.Object != ref || !one.Reads(keys) {
			continue
		}
		r.all = append(r.all, one)
		switch one.OnChange().Step {
		case spec.StepRestart:
			r.restarting = append(r.restarting, one)
		case spec.StepRefresh:
			r.refreshing = append(r.refreshing, one)
		default:
		}
	}
	return r
}

// workloadReader returns what is known of top, which is restarted for the workloads that
// use clone. reads is false if none of its pod templates reads one of the keys.
func (g *Gatherer) workloadReader(top *workload.Workload, clone readClone, pods []*workload.Pod) (found consumerhealth.Consumer, reads bool) {
	k, state := top.Key(), g.withoutInputs(top)
	stored, inputs := state.Stored(), g.Inputs(g.Consumers.StampedGroup(top), false)
	for i, one := range inputs {
		inputs[i] = decide.AsRecorded(g.Hasher, top.UID, stored, one)
	}
	read := readingOf(inputs, clone.Ref(), clone.keys)
	if len(read.all) == 0 || top.IsTarget() {
		return found, false
	}
	found = consumerhealth.Consumer{
		Name: k.Namespace + "/" + nameOf(k), UID: top.UID, CreatedAt: top.CreationTimestamp.Time, Workload: g.Consumers.EffectiveRollout(top),
		Restarts: len(read.restarting) > 0, Excluded: len(read.restarting)+len(read.refreshing) == 0, Settled: true,
		LacksKey: slices.ContainsFunc(read.all, decide.Input.HasMissing),
	}
	for _, one := range read.restarting {
		found.Settled = found.Settled && decide.StatusOf(g.Hasher, top.UID, stored, one) == decide.Current
	}
	found.Waits, found.Paced = waitOf(&state)
	for _, pod := range pods {
		found.Pods = append(found.Pods, g.podOf(top, pod, clone, read))
	}
	return found, true
}

// podOf returns what is known of a pod of top, whose stamp says what it started with.
func (g *Gatherer) podOf(top *workload.Workload, pod *workload.Pod, clone readClone, read readInputs) consumerhealth.Pod {
	stamp, restarts := pod.Annotations[mark.RestartedFor], len(read.restarting) > 0
	started := pod.StartedAfter(clone.ChangedAt) || restarts
	for _, one := range read.restarting {
		started = started && (pod.StartedAfter(clone.ChangedAt) || decide.Carries(g.Hasher, top.UID, stamp, one))
	}
	return consumerhealth.Pod{Pod: pod, Started: started, Shows: g.shows(pod, read, clone.synced), Other: !started && restarts && stamp != ""}
}

// waitOf returns why a restart waits; empty if none does. paced is true if that is
// Headwater's own pace alone.
func waitOf(s *decide.State) (reason string, paced bool) {
	if s.Known.Waits == "" && s.Known.Debounced.After(s.Now) {
		return string(decide.WaitDebounce), true
	}
	return string(s.Known.Waits), s.Known.Waits.IsOwnPace()
}

// podReader returns what is known of pod, which no workload restarts for clone.
func (g *Gatherer) podReader(pod *workload.Pod, clone readClone) (found consumerhealth.Consumer, reads bool) {
	read := readingOf(g.PodInputs(pod), clone.Ref(), clone.keys)
	found = consumerhealth.Consumer{
		Name: pod.Namespace + "/" + nameOf(pod.Key()), UID: pod.UID, CreatedAt: pod.CreationTimestamp.Time, Excluded: len(read.refreshing) == 0,
		LacksKey: slices.ContainsFunc(read.all, decide.Input.HasMissing),
		Pods:     []consumerhealth.Pod{{Pod: pod, Started: pod.StartedAfter(clone.ChangedAt), Shows: g.shows(pod, read, clone.synced)}},
	}
	if pod.Controller != (workload.PodController{}) {
		found.Controller = pod.Controller.Value().UID
	}
	return found, len(read.all) > 0
}

// shows reports whether the volumes of pod are known to show what it reads, and nothing of
// that needs a restart.
func (g *Gatherer) shows(pod *workload.Pod, read readInputs, synced bool) bool {
	if len(read.restarting) > 0 || len(read.refreshing) == 0 {
		return false
	}
	var confirmed *string
	if g.Settings.ConfirmAfter > 0 {
		confirmed = new(g.annotation(pod, mark.RefreshConfirmed))
	}
	stored := g.annotation(pod, mark.RefreshedFor)
	for _, one := range read.refreshing {
		if !decide.Shows(g.Hasher, pod, stored, confirmed, one, synced) {
			return false
		}
	}
	return true
}

// nameOf names a consumer inside its namespace.
func nameOf(k kinds.Key) string { return string(k.Kind) + "/" + k.Name }
