package optin

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// Preferences are what the owner of a consumer says about it: its labels, which
// rules select by, and annotations.
type Preferences struct {
	Labels labels.Set
	// pace is that of restarts that no rule governs.
	Pace spec.Pace
	// how applies instead of a rule's action; empty leaves it to the rule.
	How spec.Action
	// keys are the only ones that count; nil means all.
	keys []string
	// asks are what it is reloaded for without a rule.
	Asks []OptIn
	// named and patterns are what other tools are told to reload it for beside
	// what its pods consume.
	Named    []object.Ref
	Patterns []Pattern
	// MinInterval is the least time between two restarts; 0 leaves it open.
	MinInterval time.Duration
	// reloader is what the owner says to Reloader, where that counts, and ignores
	// says that objects may tell Reloader to ignore them; see SectionOptIn.
	reloader *ReloaderOptIn
	ignores  bool
}

// Fault is an annotation that is ignored, wholly or in part, since it cannot be
// read or honoured.
type Fault struct {
	Annotation, Problem string
	InPart              bool
}

// reloadOff is what None is called in the annotation.
const reloadOff = "Off"

// ReadPreferences reads the wishes on a consumer. Who says something to Headwater says
// nothing to other tools.
func ReadPreferences(meta *metav1.ObjectMeta, theirs *ThirdParty, settings spec.Settings) (Preferences, []Fault) {
	of := Preferences{Labels: meta.Labels, Pace: settings.Pace(), ignores: settings.Honours(spec.Reloader)}
	var faults []Fault
	read := func(annotation string, parse func(value string) error) {
		value, set := meta.Annotations[annotation]
		if !set {
			return
		}
		if err := parse(value); err != nil {
			faults = append(faults, Fault{Annotation: annotation, Problem: err.Error()})
		}
	}
	var own headwaterOptIn
	read(mark.Reload, func(value string) (err error) { of.How, err = parseAction(value); return err })
	read(mark.ReloadOn, func(value string) (err error) { own.on, err = mark.ParseReloadOn(meta.Namespace, value); return err })
	read(mark.ReloadKeys, func(value string) (err error) { of.keys, err = mark.ParseReloadKeys(value); return err })
	switch {
	case !settings.OptsIn() || of.How == spec.None:
	case of.How != "" || own.on != nil:
		own.how = of.How
		of.Asks = []OptIn{own}
	case theirs != nil:
		faults = append(faults, of.applyThirdParty(theirs, settings)...)
	}
	return of, faults
}

// InheritFrom is w for a workload that another is stamped for: where that one's owner
// says something to Headwater, it holds for both.
func (w Preferences) InheritFrom(top Preferences) Preferences {
	if top.How != "" {
		w.How, w.Asks = top.How, top.Asks
		w.Named, w.Patterns, w.MinInterval, w.reloader = nil, nil, 0, nil
	}
	if top.keys != nil {
		w.keys = top.keys
	}
	return w
}

// applyThirdParty adds what the owner tells the tools that are honoured.
func (w *Preferences) applyThirdParty(theirs *ThirdParty, settings spec.Settings) []Fault {
	var faults []Fault
	if settings.Honours(spec.Reloader) {
		w.Asks = append(w.Asks, theirs.reloader)
		w.Named, w.Patterns = theirs.reloader.Names, theirs.reloader.Patterns
		w.MinInterval, w.reloader = theirs.reloader.pause, theirs.reloader
		faults = theirs.reloader.faults
	}
	if settings.Honours(spec.Wave) && theirs.wave.asked {
		w.Asks = append(w.Asks, theirs.wave)
		w.Named = slices.Concat(w.Named, theirs.wave.extras)
		faults = slices.Concat(faults, theirs.wave.faults)
	}
	return faults
}

func parseAction(value string) (spec.Action, error) {
	switch value {
	case string(spec.Auto), string(spec.Restart), string(spec.Refresh):
		return spec.Action(value), nil
	case reloadOff:
		return spec.None, nil
	default:
		return "", fmt.Errorf("%.40q is not Auto, Restart, Refresh or Off", value)
	}
}

// OptInFor returns the first of the asks that covers r, which is ref and bears
// tags; nil when none does. What a rule governs, the configuration asks for by
// that rule alone.
func (w Preferences) OptInFor(r refs.Reference, ref object.Ref, tags mark.Tags, ruled bool) OptIn {
	for _, asked := range w.Asks {
		if asked.matches(ref, r.Mode, tags) && (!ruled || asked.Tool() != spec.Sections) {
			return asked
		}
	}
	return nil
}

// ExclusionReason returns why r, which no ask covers, is not covered after all.
func (w Preferences) ExclusionReason(r refs.Reference, ref object.Ref, tags mark.Tags) spec.Reason {
	for _, asked := range w.Asks {
		sparing, is := asked.(interface {
			wants(ref object.Ref, mode refs.Mode, tags mark.Tags) bool
			exclusionReason(ref object.Ref, tags mark.Tags) spec.Reason
		})
		if is && sparing.wants(ref, r.Mode, tags) {
			return sparing.exclusionReason(ref, tags)
		}
	}
	return ""
}

// ReferencesTo are those of references that are to ref, and the one by which
// other tools are told of it.
func (w Preferences) ReferencesTo(ref object.Ref, references []refs.Reference) []refs.Reference {
	var found []refs.Reference
	for _, r := range references {
		if r.Kind == ref.Kind && r.Name == ref.Name {
			found = append(found, r)
		}
	}
	if slices.Contains(w.Named, ref) || slices.ContainsFunc(w.Patterns, func(p Pattern) bool { return p.Matches(ref) }) {
		found = append(found, ListedReference(ref))
	}
	return found
}

// Narrowed is r with the keys that count, and false when none of them does.
func (w Preferences) Narrowed(r refs.Reference) (refs.Reference, bool) {
	switch {
	case w.keys == nil:
		return r, true
	case r.Keys == nil:
		r.Keys = w.keys
		return r, true
	}
	keys := slices.DeleteFunc(slices.Clone(r.Keys), func(key string) bool { return !slices.Contains(w.keys, key) })
	if len(keys) == 0 {
		return r, false
	}
	r.Keys = keys
	return r, true
}

// Listed are the references that the owner of a workload lists for Headwater
// beside those of its pods.
func Listed(meta *metav1.ObjectMeta) []refs.Reference {
	objects, _ := mark.ParseReloadOn(meta.Namespace, meta.Annotations[mark.ReloadOn]) // a fault is told by ReadPreferences
	references := make([]refs.Reference, 0, len(objects))
	for _, ref := range objects {
		references = append(references, ListedReference(ref))
	}
	return references
}

// ListedReference is that of an object that an owner lists. No pod needs it to
// start.
func ListedReference(ref object.Ref) refs.Reference {
	return refs.Reference{Kind: ref.Kind, Name: ref.Name, Mode: refs.Listed, Optional: true}
}
