package gather

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// WorkloadsUsing returns the workloads that consume or list ref. Patterns count only if
// Reloader compatibility is enabled.
func (c *Consumers) WorkloadsUsing(ref object.Ref, settings spec.Settings) []*workload.Workload {
	found := c.byIndex(byReference, ref.String())
	if !settings.Honours(spec.Reloader) {
		return found
	}
	for _, w := range c.byIndex(byPattern, ref.Namespace) {
		listed := slices.ContainsFunc(w.ThirdParty.Patterns(), func(p optin.Pattern) bool { return p.Matches(ref) })
		if listed && !slices.Contains(found, w) {
			found = append(found, w)
		}
	}
	return found
}

// Consume reports whether any consumer uses ref, or lists it by name.
func (c *Consumers) Consume(ref object.Ref) bool {
	return len(c.PodsUsing(ref)) > 0 || len(c.byIndex(byReference, ref.String())) > 0
}

// PodsUsing returns the pods that consume ref.
func (c *Consumers) PodsUsing(ref object.Ref) []*workload.Pod {
	return c.Pods.ByIndex(byReference, ref.String())
}

// runningPodsUsing returns the running pods of w that consume ref.
func (c *Consumers) runningPodsUsing(w *workload.Workload, ref object.Ref) []*workload.Pod {
	return decide.Filter(c.PodsUsing(ref), func(pod *workload.Pod) bool { return pod.Running() && c.isFrom(w, pod) })
}

// PodsOf returns the pods of w and of the workloads restarted through it. It omits pods
// that share no reference with their pod template.
func (c *Consumers) PodsOf(w *workload.Workload) []*workload.Pod {
	var pods []*workload.Pod
	seen := map[kinds.Key]bool{}
	for _, member := range c.StampedGroup(w) {
		for _, ref := range ObjectsOf(member.Namespace, member.References, nil) {
			for _, pod := range c.PodsUsing(ref) {
				if !seen[pod.Key()] && c.isFrom(member, pod) {
					seen[pod.Key()] = true
					pods = append(pods, pod)
				}
			}
		}
	}
	return pods
}

// isFrom reports whether pod was created from w's pod template.
func (c *Consumers) isFrom(w *workload.Workload, pod *workload.Pod) bool {
	if pod.OwnerKind == w.Kind {
		return pod.OwnerName == w.Name
	}
	owner, found := c.OwnerOf(pod) // an Argo Rollout may own the pod and use the template of w
	return found && owner.Key() == w.Key()
}

// byIndex returns the workloads of every kind that have value in index.
func (c *Consumers) byIndex(index, value string) []*workload.Workload {
	var found []*workload.Workload
	for _, kind := range kinds.WorkloadKinds() {
		found = append(found, c.Workloads[kind].ByIndex(index, value)...)
	}
	return append(found, c.Optional.ByIndex(index, value)...)
}

// AllWorkloads returns the workloads of every kind.
func (c *Consumers) AllWorkloads() []*workload.Workload {
	var workloads []*workload.Workload
	for _, kind := range kinds.WorkloadKinds() {
		workloads = append(workloads, c.Workloads[kind].List()...)
	}
	return append(workloads, c.Optional.List()...)
}

// All returns every consumer, workloads first.
func (c *Consumers) All() []kinds.Key {
	var keys []kinds.Key
	for _, w := range c.AllWorkloads() {
		if w.Relevant() {
			keys = append(keys, w.Key())
		}
	}
	for _, p := range c.Pods.List() {
		if p.Relevant() {
			keys = append(keys, p.Key())
		}
	}
	return keys
}

// Workload returns the workload that k names.
func (c *Consumers) Workload(k kinds.Key) (*workload.Workload, bool) {
	if view, every := c.Workloads[k.Kind]; every {
		return view.Get(k.Namespace, k.Name)
	}
	return c.Optional.Get(k.Kind.GroupKind(), k.Namespace, k.Name)
}

// EffectiveRollout returns w with the rollout that follows a change of its pod
// template. If w has no pods itself, that is the rollout of the Argo Rollout that uses
// the template.
func (c *Consumers) EffectiveRollout(w *workload.Workload) *workload.Workload {
	if w.Rollout == nil || w.Rollout.ReplacesPods() {
		return w
	}
	for _, borrower := range c.Optional.ByIndex(byBorrowed, w.Key().String()) {
		if borrower.Rollout != nil {
			is, rollout := *w, *borrower.Rollout
			rollout.Template, rollout.Generation = w.Rollout.Template, w.Rollout.Generation
			is.Rollout = &rollout
			return &is
		}
	}
	return w
}

// OwnerOf returns the workload whose pod template pod was created from.
func (c *Consumers) OwnerOf(pod *workload.Pod) (*workload.Workload, bool) {
	if pod.OwnerKind == "" {
		return nil, false
	}
	owner, found := c.Workload(kinds.Key{Kind: pod.OwnerKind, Namespace: pod.Namespace, Name: pod.OwnerName})
	if found && owner.TemplateFrom != nil {
		return c.Workload(*owner.TemplateFrom)
	}
	return owner, found
}

// FromTemplate reports whether pod consumes ref because its pod template does.
// Admission webhooks can add references to pods.
func (c *Consumers) FromTemplate(pod *workload.Pod, ref object.Ref) bool {
	owner, owned := c.OwnerOf(pod)
	return owned && !owner.NoTemplate && slices.Contains(ObjectsOf(owner.Namespace, owner.References, nil), ref)
}

// Untemplated returns the object on which to report about pod, its controller or
// itself, if pod has no pod template that Headwater can stamp.
func (c *Consumers) Untemplated(pod *workload.Pod) (about corev1.ObjectReference, is bool) {
	if _, found := c.OwnerOf(pod); found {
		return about, false
	}
	if pod.OwnerKind != "" && !pod.OwnerKind.RunsToCompletion() { // otherwise somebody created the Job
		if _, lookup := c.Lookup(pod.Namespace, workload.Owner{Kind: pod.OwnerKind, Name: pod.OwnerName}); lookup != workload.OwnerUnsupported {
			return about, false // its owner is not cached yet, or deleted
		}
	}
	if pod.Controller != (workload.PodController{}) {
		return pod.Controller.Value(), true
	}
	return corev1.ObjectReference{APIVersion: "v1", Kind: string(kinds.KindPod), Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}, true
}

func selectsTarget(t spec.CompiledTarget, w *workload.Workload) bool {
	return w.Kind == t.Info.ConsumerKind() && t.Selector.Matches(labels.Set(w.Labels))
}

// RootsUsing returns the workloads that are restarted for those that consume or list ref.
func (c *Consumers) RootsUsing(ref object.Ref, settings spec.Settings) []kinds.Key {
	var roots []kinds.Key
	for _, w := range c.WorkloadsUsing(ref, settings) {
		roots = append(roots, c.RootOwner(w).Root.Key())
	}
	return roots
}

// RootOwner finds the workload to restart for w; see workload.FindRootOwner.
func (c *Consumers) RootOwner(w *workload.Workload) workload.RootOwner {
	return workload.FindRootOwner(w, func(owner workload.Owner) (*workload.Workload, workload.OwnerLookup) {
		return c.Lookup(w.Namespace, owner)
	})
}

// Lookup finds an owner in the caches, and says why it is not found.
func (c *Consumers) Lookup(namespace string, owner workload.Owner) (*workload.Workload, workload.OwnerLookup) {
	kind, from := owner.Kind.GroupKind(), c.Optional
	found, ok := c.Workload(kinds.Key{Kind: owner.Kind, Namespace: namespace, Name: owner.Name})
	if _, every := c.Workloads[owner.Kind]; !every {
		if from.Status(kind) == informers.KindAbsent {
			from = c.Owners
			found, ok = from.Get(kind, namespace, owner.Name)
		}
		switch from.Status(kind) {
		case informers.KindAbsent, informers.KindRefused:
			return nil, workload.OwnerUnsupported
		case informers.KindFilling:
			return nil, workload.OwnerNotSynced
		case informers.KindFull:
		}
	}
	if ok {
		return found, workload.OwnerFound
	}
	return nil, workload.OwnerNotFound
}

// Below returns everything that w controls, also through others.
func (c *Consumers) Below(w *workload.Workload) []*workload.Workload {
	all := []*workload.Workload{w}
	for at := 0; at < len(all) && w.UID != ""; at++ {
		uid := string(all[at].UID)
		for _, one := range append(c.byIndex(byOwner, uid), c.Owners.ByIndex(byOwner, uid)...) {
			if !slices.ContainsFunc(all, func(known *workload.Workload) bool { return known.Key() == one.Key() }) {
				all = append(all, one)
			}
		}
	}
	return all[1:]
}

// StampedGroup returns top and every workload that is restarted through it.
func (c *Consumers) StampedGroup(top *workload.Workload) []*workload.Workload {
	all := []*workload.Workload{top}
	if !top.Templated() {
		return all
	}
	for _, w := range c.Below(top) {
		if is := c.RootOwner(w).Root; !w.IsTarget() && is.Key() == top.Key() && is.UID == top.UID {
			all = append(all, w)
		}
	}
	return all
}

// AffectedKeys returns the workloads to reconcile after a change of w: itself, and the
// one that is restarted for it.
func (c *Consumers) AffectedKeys(w *workload.Workload) []kinds.Key {
	keys := []kinds.Key{w.Key()}
	if top := c.RootOwner(w).Root; top != w {
		keys = append(keys, top.Key())
	}
	return keys
}
