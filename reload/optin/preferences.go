package optin

import (
	"cmp"
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

// Preferences are what the owner of a consumer sets by labels and annotations.
type Preferences struct {
	Labels labels.Set
	// Pace applies to restarts that no rule governs.
	Pace spec.Pace
	// How overrides the rule's action; empty keeps it.
	How spec.Action
	// keys are the only relevant keys; nil means all.
	keys []string
	// Asks are the opt-ins: reasons to reload without a rule.
	Asks []optIn
	// Named and Patterns list objects by annotations of other tools, whether pods
	// consume them or not.
	Named    []object.Ref
	Patterns []Pattern
	// Debounce is for how long an object must not have changed before a restart; 0 means no
	// preference.
	Debounce time.Duration
	// Windows are further times in which restarts may start; empty means no preference.
	Windows []spec.Windows
	// reloader and ignores are used by SectionOptIn.
	reloader *ReloaderOptIn
	ignores  bool
}

// Fault is an annotation that is ignored, entirely or in part, because it is invalid or
// not supported.
type Fault struct {
	Annotation, Problem string
	InPart              bool
}

// reloadOff is the annotation value for None.
const reloadOff = "Off"

// ReadPreferences reads the preferences of a consumer. Headwater's annotations take
// precedence: if there are any, those of other tools are ignored.
func ReadPreferences(meta *metav1.ObjectMeta, thirdParty *ThirdParty, settings spec.Settings) (Preferences, []Fault) {
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
	read(mark.ReloadDebounce, func(value string) (err error) { of.Debounce, err = parseDebounce(value); return err })
	read(mark.ReloadWindows, func(value string) error {
		windows, err := spec.ParseWindows(value)
		if err == nil {
			of.Windows = []spec.Windows{windows}
		}
		return err
	})
	switch {
	case !settings.OptsIn() || of.How == spec.None:
	case of.How != "" || own.on != nil:
		own.how = of.How
		of.Asks = []optIn{own}
	case thirdParty != nil:
		faults = append(faults, of.applyThirdParty(thirdParty, settings)...)
	}
	return of, faults
}

// InheritFrom returns w for a workload that is restarted through its owner top.
// Headwater annotations of top apply to both.
func (w Preferences) InheritFrom(top Preferences) Preferences {
	if top.How != "" {
		w.How, w.Asks = top.How, top.Asks
		w.Named, w.Patterns, w.Debounce, w.reloader = nil, nil, 0, nil
	}
	w.Debounce = cmp.Or(top.Debounce, w.Debounce)
	if top.Windows != nil {
		w.Windows = top.Windows
	}
	if top.keys != nil {
		w.keys = top.keys
	}
	return w
}

// applyThirdParty adds the opt-ins to other tools that are enabled.
func (w *Preferences) applyThirdParty(thirdParty *ThirdParty, settings spec.Settings) []Fault {
	var faults []Fault
	if settings.Honours(spec.Reloader) {
		w.Asks = append(w.Asks, thirdParty.reloader)
		w.Named, w.Patterns = thirdParty.reloader.Names, thirdParty.reloader.Patterns
		w.Debounce, w.reloader = cmp.Or(w.Debounce, thirdParty.reloader.pause), thirdParty.reloader
		faults = thirdParty.reloader.faults
	}
	if settings.Honours(spec.Wave) && thirdParty.wave.asked {
		w.Asks = append(w.Asks, thirdParty.wave)
		w.Named = slices.Concat(w.Named, thirdParty.wave.extras)
		faults = slices.Concat(faults, thirdParty.wave.faults)
	}
	return faults
}

// Limits returns what delays the restarts of the consumer, with or without a rule.
func (w Preferences) Limits() spec.Pace { return spec.Pace{Quiet: w.Debounce, Windows: w.Windows} }

func parseDebounce(value string) (time.Duration, error) {
	debounce, err := time.ParseDuration(value)
	if err != nil || debounce <= 0 || debounce > spec.MaxDebounce {
		return 0, fmt.Errorf("%.40q is not a time above zero and at most %s, such as 5m", value, spec.MaxDebounce)
	}
	return debounce, nil
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

// OptInFor returns the first opt-in that covers r, a reference to ref with these tags;
// nil if there is none. Sections do not apply to objects that a rule governs.
func (w Preferences) OptInFor(r refs.Reference, ref object.Ref, tags mark.Tags, ruled bool) optIn {
	for _, asked := range w.Asks {
		if asked.wants(ref, r.Mode, tags) && asked.exclusionReason(ref, tags) == "" && (!ruled || asked.Tool() != spec.Sections) {
			return asked
		}
	}
	return nil
}

// ExclusionReason returns why an opt-in that would match r is suppressed; empty if
// there is none.
func (w Preferences) ExclusionReason(r refs.Reference, ref object.Ref, tags mark.Tags) spec.Reason {
	for _, asked := range w.Asks {
		if asked.wants(ref, r.Mode, tags) {
			return asked.exclusionReason(ref, tags)
		}
	}
	return ""
}

// ReferencesTo returns the references to ref, including a listing by other tools'
// annotations.
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

// Narrowed returns r limited to the relevant keys, and false if it consumes none of
// them.
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

// Listed returns a reference for each object in the annotation reload-on.
func Listed(meta *metav1.ObjectMeta) []refs.Reference {
	objects, _ := mark.ParseReloadOn(meta.Namespace, meta.Annotations[mark.ReloadOn]) // ReadPreferences reports faults
	references := make([]refs.Reference, 0, len(objects))
	for _, ref := range objects {
		references = append(references, ListedReference(ref))
	}
	return references
}

// ListedReference is the reference to an object that an owner lists. No pod needs it to
// start.
func ListedReference(ref object.Ref) refs.Reference {
	return refs.Reference{Kind: ref.Kind, Name: ref.Name, Mode: refs.Listed, Optional: true}
}

// headwaterOptIn is an opt-in by Headwater's annotations. It covers every consumed
// object if how is set, and otherwise the objects in on.
type headwaterOptIn struct {
	excludesNothing
	how spec.Action
	on  []object.Ref
}

func (a headwaterOptIn) Tool() spec.Tool { return spec.Headwater }

func (a headwaterOptIn) Action() spec.Action { return a.how }

func (a headwaterOptIn) wants(ref object.Ref, _ refs.Mode, _ mark.Tags) bool {
	return a.how != "" || slices.Contains(a.on, ref)
}
