package gather

import (
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// PreferencesFor takes the wishes for w from itself, and from the one that is stamped
// for it: what made w may take off again whatever is written on w.
func (c *Consumers) PreferencesFor(w *workload.Workload, settings spec.Settings) optin.Preferences {
	of := w.Preferences(settings)
	if top := c.RootOwner(w).Root; top != w {
		of = of.InheritFrom(top.Preferences(settings))
	}
	return c.sectioned(of, w.Namespace)
}

// sectioned adds what sections of the configuration ask for a consumer of that
// namespace.
func (c *Consumers) sectioned(of optin.Preferences, namespace string) optin.Preferences {
	if c.Sections == nil {
		return of
	}
	sections, namespaceLabels := c.Sections(namespace)
	return of.GovernedBy(sections, namespace, namespaceLabels)
}

// PreferencesForPod takes the wishes for a pod from the workload it belongs to. Those
// of a pod without one, or whose workload is not cached, are its own.
func (c *Consumers) PreferencesForPod(pod *workload.Pod, settings spec.Settings) optin.Preferences {
	if owner, found := c.OwnerOf(pod); found {
		return c.PreferencesFor(owner, settings)
	}
	of, _ := optin.ReadPreferences(&pod.ObjectMeta, nil, settings)
	return c.sectioned(of, pod.Namespace)
}

// SectionsFor returns what consumers.sections is, by the labels that namespaces
// are known to have. About a namespace that is not known no section is.
func SectionsFor(namespaces *informers.View[*informers.Namespace], sections func() []spec.Section) func(string) ([]spec.Section, map[string]string) {
	return func(name string) ([]spec.Section, map[string]string) {
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
