package reload

import (
	"slices"

	"github.com/headwater-k8s/headwater/internal/object"
)

// workloadsUsing returns the workloads that consume ref, or list it. Patterns
// are matched where somebody heeds them alone.
func (c *consumers) workloadsUsing(ref object.Ref, settings Settings) []*Workload {
	found := c.byIndex(byReference, ref.String())
	if !settings.honours(Reloader) {
		return found
	}
	for _, w := range c.byIndex(byPattern, ref.Namespace) {
		listed := slices.ContainsFunc(w.foreign.patterns(), func(p pattern) bool { return p.matches(ref) })
		if listed && !slices.Contains(found, w) {
			found = append(found, w)
		}
	}
	return found
}

// consume reports whether anybody consumes ref, or lists it by its name.
func (c *consumers) consume(ref object.Ref) bool {
	return len(c.podsUsing(ref)) > 0 || len(c.byIndex(byReference, ref.String())) > 0
}

// podsUsing returns the pods that consume ref.
func (c *consumers) podsUsing(ref object.Ref) []*Pod {
	return c.pods.ByIndex(byReference, ref.String())
}

// reading returns the pods of w that run and consume ref.
func (c *consumers) reading(w *Workload, ref object.Ref) []*Pod {
	return filter(c.podsUsing(ref), func(pod *Pod) bool { return pod.running() && c.made(w, pod) })
}

// podsOf returns the pods of w, and of the workloads that it is stamped for,
// that read anything that these do.
func (c *consumers) podsOf(w *Workload) []*Pod {
	var pods []*Pod
	seen := map[key]bool{}
	for _, member := range c.family(w) {
		for _, value := range indexValues(member.Namespace, member.References) {
			for _, pod := range c.pods.ByIndex(byReference, value) {
				if !seen[pod.key()] && c.made(member, pod) {
					seen[pod.key()] = true
					pods = append(pods, pod)
				}
			}
		}
	}
	return pods
}

// made reports whether pod was made from w's pod template.
func (c *consumers) made(w *Workload, pod *Pod) bool {
	if pod.OwnerKind == w.Kind {
		return pod.OwnerName == w.Name
	}
	owner, found := c.ownerOf(pod) // which is another kind when that borrows the template
	return found && owner.key() == w.key()
}

// byIndex returns the workloads of every kind that have value in index.
func (c *consumers) byIndex(index, value string) []*Workload {
	var found []*Workload
	for _, kind := range workloadKinds() {
		found = append(found, c.workloads[kind].ByIndex(index, value)...)
	}
	return append(found, c.optional.ByIndex(index, value)...)
}

// allWorkloads returns the workloads of every kind.
func (c *consumers) allWorkloads() []*Workload {
	var workloads []*Workload
	for _, kind := range workloadKinds() {
		workloads = append(workloads, c.workloads[kind].List()...)
	}
	return append(workloads, c.optional.List()...)
}

// all returns every consumer, workloads first.
func (c *consumers) all() []key {
	var keys []key
	for _, w := range c.allWorkloads() {
		if w.relevant() {
			keys = append(keys, w.key())
		}
	}
	for _, p := range c.pods.List() {
		if p.relevant() {
			keys = append(keys, p.key())
		}
	}
	return keys
}

// workload returns the workload that k names.
func (c *consumers) workload(k key) (*Workload, bool) {
	if view, every := c.workloads[k.kind]; every {
		return view.Get(k.namespace, k.name)
	}
	return c.optional.Get(k.kind.groupKind(), k.namespace, k.name)
}

// rolling is w with the rollout that a change of its pod template makes: its own,
// or, where it has no pods itself, that of what borrows the template.
func (c *consumers) rolling(w *Workload) *Workload {
	if w.Rollout == nil || w.Rollout.moves() {
		return w
	}
	for _, borrower := range c.optional.ByIndex(byBorrowed, w.key().String()) {
		if borrower.Rollout != nil {
			is, rollout := *w, *borrower.Rollout
			rollout.Template, rollout.Generation = w.Rollout.Template, w.Rollout.Generation
			is.Rollout = &rollout
			return &is
		}
	}
	return w
}

// ownerOf returns the workload whose pod template pod was made from.
func (c *consumers) ownerOf(pod *Pod) (*Workload, bool) {
	if pod.OwnerKind == "" {
		return nil, false
	}
	owner, found := c.workload(key{pod.OwnerKind, pod.Namespace, pod.OwnerName})
	if found && owner.Borrows != nil {
		return c.workload(*owner.Borrows)
	}
	return owner, found
}
