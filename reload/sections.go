package reload

import (
	"slices"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/object"
)

// sectionsFor returns what consumers.sections is, by the labels that namespaces
// are known to have. About a namespace that is not known no section is.
func sectionsFor(namespaces *kube.View[*kube.Namespace], sections func() []namespaceSection) func(string) ([]namespaceSection, map[string]string) {
	return func(name string) ([]namespaceSection, map[string]string) {
		current := sections()
		if len(current) == 0 {
			return nil, nil
		}
		namespace, known := namespaces.Get("", name)
		if !known {
			return nil, nil
		}
		return current, namespace.Labels
	}
}

// unplaced reports whether the sections need the labels of the namespace of a
// consumer, and these are not known yet.
func (c *controller) unplaced(k key) bool {
	if len(c.settings.Load().sections) == 0 {
		return false
	}
	if _, known := c.caches.Namespaces.Get("", k.namespace); known {
		return false
	}
	if k.kind == KindPod {
		_, exists := c.consumers.pods.Get(k.namespace, k.name)
		return exists
	}
	_, exists := c.consumers.workload(k)
	return exists
}

// namespaceChanged reconciles the consumers of a namespace that a section is
// about since its labels changed, or no longer is. In a new one nothing is known
// yet.
func (c *controller) namespaceChanged(change kube.Change[*kube.Namespace]) {
	if change.Added || change.Deleted {
		return
	}
	name := change.New.Name
	if !slices.ContainsFunc(c.settings.Load().sections, func(s namespaceSection) bool {
		return s.namespaces.Matches(name, change.Old.Labels) != s.namespaces.Matches(name, change.New.Labels)
	}) {
		return
	}
	c.reads.reviewAll(func(ref object.Ref) bool { return ref.Namespace == name })
	for _, k := range c.consumers.all() {
		if k.namespace == name {
			c.queue.Fresh(k)
		}
	}
}
