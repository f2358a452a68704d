package gather

import (
	"slices"

	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// byOwner is the index from the UID of a controller to what it controls.
const byOwner = "owner"

func ownerValues(w *workload.Workload) []string {
	if w.Owner == nil {
		return nil
	}
	return []string{string(w.Owner.UID)}
}

// RootOwner finds the workload to restart for w; see workload.FindRootOwner.
func (c *Consumers) RootOwner(w *workload.Workload) workload.RootOwner {
	return workload.FindRootOwner(w, func(owner workload.Owner) (*workload.Workload, workload.OwnerLookup) {
		return c.Lookup(w.Namespace, owner)
	})
}

// Lookup finds an owner in the caches, and says why it is not found.
func (c *Consumers) Lookup(namespace string, owner workload.Owner) (*workload.Workload, workload.OwnerLookup) {
	if _, every := c.Workloads[owner.Kind]; !every {
		switch c.Optional.Status(owner.Kind.GroupKind()) {
		case informers.KindAbsent, informers.KindRefused:
			return nil, workload.OwnerUnsupported
		case informers.KindFilling:
			return nil, workload.OwnerNotSynced
		case informers.KindFull:
		}
	}
	if found, ok := c.Workload(kinds.Key{Kind: owner.Kind, Namespace: namespace, Name: owner.Name}); ok {
		return found, workload.OwnerFound
	}
	return nil, workload.OwnerNotFound
}

// Controlled returns what w controls.
func (c *Consumers) Controlled(w *workload.Workload) []*workload.Workload {
	if w.UID == "" {
		return nil
	}
	return c.byIndex(byOwner, string(w.UID))
}

// StampedGroup returns top and every workload that is restarted through it.
func (c *Consumers) StampedGroup(top *workload.Workload) []*workload.Workload {
	all := []*workload.Workload{top}
	if !top.Templated() {
		return all
	}
	for at := 0; at < len(all); at++ {
		for _, w := range c.Controlled(all[at]) {
			is, again := c.RootOwner(w).Root, slices.ContainsFunc(all, func(one *workload.Workload) bool { return one.Key() == w.Key() })
			if !again && is.Key() == top.Key() && is.UID == top.UID {
				all = append(all, w)
			}
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
