package reload

import (
	"slices"

	"github.com/headwater-k8s/headwater/internal/cut"
	"github.com/headwater-k8s/headwater/internal/kube"
)

// byOwner is the index from the UID of a controller to what it controls.
const byOwner = "owner"

func ownerValues(w *Workload) []string {
	if w.Owner == nil {
		return nil
	}
	return []string{string(w.Owner.UID)}
}

// topOf walks up from w, see the function of that name.
func (c *consumers) topOf(w *Workload) topmost {
	return topOf(w, func(owner Owner) (*Workload, Sight) { return c.look(w.Namespace, owner) })
}

func (c *consumers) look(namespace string, owner Owner) (*Workload, Sight) {
	if _, every := c.workloads[owner.Kind]; !every {
		switch c.optional.Standing(owner.Kind.groupKind()) {
		case kube.StandingAbsent, kube.StandingRefused:
			return nil, SightStrange
		case kube.StandingFilling:
			return nil, SightUnread
		case kube.StandingFull:
		}
	}
	if found, ok := c.workload(key{owner.Kind, namespace, owner.Name}); ok {
		return found, SightFound
	}
	return nil, SightGone
}

// controlled returns what w controls.
func (c *consumers) controlled(w *Workload) []*Workload {
	if w.UID == "" {
		return nil
	}
	return c.byIndex(byOwner, string(w.UID))
}

// family is top and every workload that it is stamped for.
func (c *consumers) family(top *Workload) []*Workload {
	all := []*Workload{top}
	if !top.templated() {
		return all
	}
	for at := 0; at < len(all); at++ {
		for _, w := range c.controlled(all[at]) {
			is, again := c.topOf(w).top, slices.ContainsFunc(all, func(one *Workload) bool { return one.key() == w.key() })
			if !again && is.key() == top.key() && is.UID == top.UID {
				all = append(all, w)
			}
		}
	}
	return all
}

// concerns are the workloads to look at when w changed: itself, and the one
// that is stamped for it.
func (c *consumers) concerns(w *Workload) []key {
	keys := []key{w.key()}
	if top := c.topOf(w).top; top != w {
		keys = append(keys, top.key())
	}
	return keys
}

// templateless is the topic of tellBare.
const templateless = "bare"

// someName shortens a name to what an Event has room for.
func someName(name string) string {
	const most = 300
	return cut.To(name, most)
}
