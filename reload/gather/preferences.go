package gather

import (
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// PreferencesFor returns the preferences of w and of the workload that is restarted for
// it: an owner of w may remove annotations from w.
func (c *Consumers) PreferencesFor(w *workload.Workload, settings spec.Settings) optin.Preferences {
	of := w.Preferences(settings)
	if top := c.RootOwner(w).Root; top != w {
		of = of.InheritFrom(top.Preferences(settings))
	}
	return c.withSections(of, w.Namespace)
}

// withSections adds the opt-ins by configured sections for the namespace.
func (c *Consumers) withSections(of optin.Preferences, namespace string) optin.Preferences {
	if c.Sections == nil {
		return of
	}
	sections, namespaceLabels := c.Sections(namespace)
	return of.GovernedBy(sections, namespace, namespaceLabels)
}

// PreferencesForPod returns the preferences of the workload that pod belongs to, or of
// the pod itself if that workload is not cached.
func (c *Consumers) PreferencesForPod(pod *workload.Pod, settings spec.Settings) optin.Preferences {
	if owner, found := c.OwnerOf(pod); found {
		return c.PreferencesFor(owner, settings)
	}
	of, _ := optin.ReadPreferences(&pod.ObjectMeta, nil, settings)
	return c.withSections(of, pod.Namespace)
}

// SectionsFor returns a function for Consumers.Sections. No section applies to a
// namespace that is not cached.
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
