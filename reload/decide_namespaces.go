package reload

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// namespaceAsk is what a section of reload.namespaces asks for a workload. What
// the workload's owner asks, and a rule that governs the object, come first.
type namespaceAsk struct {
	section namespaceSection
	// reloader is what the owner says to Reloader, where that counts; it may be
	// nil. ignores says that objects may tell Reloader to ignore them.
	reloader *reloaderAsk
	ignores  bool
}

func (a namespaceAsk) tool() Tool { return Sections }

func (a namespaceAsk) action() Action { return a.section.action }

func (a namespaceAsk) covers(ref object.Ref, mode Mode, tags mark.Tags) bool {
	return a.wants(ref, mode, tags) && a.spares(ref, tags) == ""
}

// wants is covers, but for what spares says.
func (a namespaceAsk) wants(ref object.Ref, mode Mode, _ mark.Tags) bool {
	return mode != Listed && a.section.covers(ref) && (a.reloader == nil || !a.reloader.declines[ref.Kind])
}

// spares returns why nothing is done for the object although the section covers
// it: what Reloader does not reload under its flag --auto-reload-all.
func (a namespaceAsk) spares(ref object.Ref, tags mark.Tags) Reason {
	switch {
	case a.reloader != nil:
		return a.reloader.spares(ref, tags)
	case a.ignores && tags.Ignore:
		return ReasonIgnored
	default:
		return ""
	}
}

// governedBy is w with what those of sections ask that are about a workload of this
// namespace, unless its owner says Off.
func (w wishes) governedBy(sections []namespaceSection, namespace string, namespaceLabels map[string]string) wishes {
	if w.how == None {
		return w
	}
	for _, section := range sections {
		if section.selects(namespace, namespaceLabels, w.labels) {
			w.asks = append(slices.Clip(w.asks), namespaceAsk{section: section, reloader: w.reloader, ignores: w.ignores})
		}
	}
	return w
}

// readLabels reports whether the labels of objects that are read are needed.
func readLabels(sections []namespaceSection) bool {
	return slices.ContainsFunc(sections, func(s namespaceSection) bool { return s.objects != nil })
}

// selectedBy is c where data with those labels is what it is about, else c as left
// alone: the labels of an object that no cache holds are known once it is read.
func (c Consumed) selectedBy(objectLabels map[string]string) Consumed {
	if c.objects == nil || c.objects.Matches(labels.Set(objectLabels)) {
		return c
	}
	return Consumed{Reference: c.Reference, Object: c.Object, Action: None}
}
