package optin

import (
	"slices"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// SectionOptIn is what a section of reload.namespaces asks for a workload. What
// the workload's owner asks, and a rule that governs the object, come first.
type SectionOptIn struct {
	Section spec.Section
	// reloader is what the owner says to Reloader, where that counts; it may be
	// nil. ignores says that objects may tell Reloader to ignore them.
	reloader *ReloaderOptIn
	ignores  bool
}

// Tool implements OptIn.
func (a SectionOptIn) Tool() spec.Tool { return spec.Sections }

// Action implements OptIn.
func (a SectionOptIn) Action() spec.Action { return a.Section.Action }

func (a SectionOptIn) matches(ref object.Ref, mode refs.Mode, tags mark.Tags) bool {
	return a.wants(ref, mode, tags) && a.exclusionReason(ref, tags) == ""
}

// wants is matches, but for what exclusionReason says.
func (a SectionOptIn) wants(ref object.Ref, mode refs.Mode, _ mark.Tags) bool {
	return mode != refs.Listed && a.Section.Covers(ref) && (a.reloader == nil || !a.reloader.declines[ref.Kind])
}

// exclusionReason returns why nothing is done for the object although the section covers
// it: what Reloader does not reload under its flag --auto-reload-all.
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

// GovernedBy is w with what those of sections ask that are about a workload of this
// namespace, unless its owner says Off.
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

// ReadLabels reports whether the labels of objects that are read are needed.
func ReadLabels(sections []spec.Section) bool {
	return slices.ContainsFunc(sections, func(s spec.Section) bool { return s.Objects != nil })
}
