package optin

import (
	"slices"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// SectionOptIn is an opt-in by a section of reload.namespaces. Annotations of the owner
// and rules take precedence.
type SectionOptIn struct {
	Section spec.Section
	// reloader is the owner's opt-in to Reloader, if enabled; nil otherwise. ignores
	// says that objects may exclude themselves by Reloader's annotation.
	reloader *ReloaderOptIn
	ignores  bool
}

// Tool implements optIn.
func (a SectionOptIn) Tool() spec.Tool { return spec.Sections }

// Action implements optIn.
func (a SectionOptIn) Action() spec.Action { return a.Section.Action }

func (a SectionOptIn) wants(ref object.Ref, mode refs.Mode, _ mark.Tags) bool {
	return mode != refs.Listed && a.Section.Covers(ref) && (a.reloader == nil || !a.reloader.declines[ref.Kind])
}

// exclusionReason returns why the object is not reloaded although the section covers
// it. The rules are those of Reloader's flag --auto-reload-all.
func (a SectionOptIn) exclusionReason(ref object.Ref, tags mark.Tags) spec.Reason {
	switch {
	case a.reloader != nil:
		return a.reloader.exclusionReason(ref, tags)
	case a.ignores && tags.Ignore:
		return spec.ReasonIgnored
	default:
		return ""
	}
}

// GovernedBy returns w with the opt-ins of the sections that select the workload. The
// annotation Off disables them.
func (w Preferences) GovernedBy(sections []spec.Section, namespace string, namespaceLabels map[string]string) Preferences {
	if w.How == spec.None {
		return w
	}
	for _, section := range sections {
		if section.Selects(namespace, namespaceLabels, w.Labels) {
			w.Asks = append(slices.Clip(w.Asks), SectionOptIn{Section: section, reloader: w.reloader, ignores: w.ignores})
		}
	}
	return w
}

// ReadLabels reports whether a section selects objects by label.
func ReadLabels(sections []spec.Section) bool {
	return slices.ContainsFunc(sections, func(s spec.Section) bool { return s.Objects != nil })
}
