package optin

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// The limits of patterns, which every workload owner can write: in characters (no name
// is longer than 253), and in steps of the compiled patterns of one workload.
const (
	maxPattern      = 512
	maxPatternSteps = 2000
)

// ReloaderOptIn is an opt-in by Reloader's annotations.
type ReloaderOptIn struct {
	// Auto, Search and excluded are by kind of object.
	Auto, Search map[object.Kind]bool
	// declines says that auto is set to false explicitly.
	declines map[object.Kind]bool
	excluded map[object.Kind][]string
	// Classes is true if auto also covers SecretProviderClasses.
	Classes  bool
	Names    []object.Ref
	Patterns []Pattern
	// steps is the cost per character of matching all patterns.
	steps int
	// pause is Preferences.Debounce.
	pause  time.Duration
	faults []Fault
}

// ReadReloader reads the Reloader annotations of a workload and of its pod template.
func ReadReloader(kind kinds.Kind, namespace string, annotations, template map[string]string) *ReloaderOptIn {
	a := &ReloaderOptIn{
		Auto: map[object.Kind]bool{}, Search: map[object.Kind]bool{}, declines: map[object.Kind]bool{}, excluded: map[object.Kind][]string{},
	}
	for _, of := range object.Kinds {
		a.excluded[of] = items(annotations[mark.ReloaderExcludes(of)])
		a.readKind(of, namespace, WhoSays(annotations, template, mark.ReloaderTypedAuto(of), mark.ReloaderNames(of)))
	}
	a.readClasses(WhoSays(annotations, template, mark.ReloaderClassAuto, mark.ReloaderClasses))
	if annotations[mark.ReloaderStrategy] == "restart" && kind == kinds.KindRollout {
		a.faults = append(a.faults, Fault{Annotation: mark.ReloaderStrategy, InPart: true, Problem: "Headwater changes the pod template, " +
			"so that new data passes the steps and the analysis of the Rollout, and never sets spec.restartAt"})
	}
	if text, set := annotations[mark.ReloaderPausePeriod]; set && kind == kinds.KindDeployment {
		pause, err := time.ParseDuration(text)
		if err != nil || pause <= 0 {
			a.fault(mark.ReloaderPausePeriod, fmt.Sprintf("%.40q is not a time above zero, such as 5m", text))
		}
		a.pause = min(max(0, pause), spec.MaxDebounce)
	}
	return a
}

// WhoSays returns the annotations that apply to one kind of object: those of the
// workload, or those of its pod template if the workload has none. typed are the
// annotations specific to the kind.
func WhoSays(annotations, template map[string]string, typed ...string) map[string]string {
	for _, key := range append(typed, mark.ReloaderAuto, mark.ReloaderSearch) {
		if _, says := annotations[key]; says {
			return annotations
		}
	}
	return template
}

// UnseenClasses is why SecretProviderClasses are not supported.
const UnseenClasses = "Headwater does not see what a Secrets Store CSI driver mounts"

func (a *ReloaderOptIn) readClasses(says map[string]string) {
	for _, key := range []string{mark.ReloaderClassAuto, mark.ReloaderClasses} {
		if _, asked := says[key]; asked {
			a.fault(key, UnseenClasses)
		}
	}
	a.Classes, _ = strconv.ParseBool(says[mark.ReloaderAuto])
}

func (a *ReloaderOptIn) readKind(kind object.Kind, namespace string, says map[string]string) {
	a.Auto[kind] = a.readBool(says, mark.ReloaderAuto) || a.readBool(says, mark.ReloaderTypedAuto(kind))
	a.declines[kind] = !a.Auto[kind] && says[mark.ReloaderAuto]+says[mark.ReloaderTypedAuto(kind)] != ""
	a.Search[kind] = says[mark.ReloaderSearch] == "true"
	list, faults := firstOf(mark.ReloaderNames(kind), items(says[mark.ReloaderNames(kind)]))
	a.faults = append(a.faults, faults...)
	for _, item := range list {
		if len(validation.IsDNS1123Subdomain(item)) == 0 {
			a.Names = append(a.Names, object.Ref{Kind: kind, Namespace: namespace, Name: item})
			continue
		}
		compiled, err := a.readPattern(item)
		if err != nil {
			a.faults = append(a.faults, Fault{Annotation: mark.ReloaderNames(kind), Problem: err.Error(), InPart: true})
			continue
		}
		a.Patterns = append(a.Patterns, Pattern{kind, compiled})
	}
}

// readPattern anchors a pattern like Reloader does. For alternatives, each anchor
// applies to one alternative only.
func (a *ReloaderOptIn) readPattern(item string) (*regexp.Regexp, error) {
	if len(item) > maxPattern {
		return nil, fmt.Errorf("the pattern %.40q… is longer than %d characters", item, maxPattern)
	}
	anchored := "^" + item + "$"
	parsed, err := syntax.Parse(anchored, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%.40q is neither a name nor a regular expression", item)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || a.steps+len(program.Inst) > maxPatternSteps {
		return nil, fmt.Errorf("the pattern %.40q is too costly to match, with those before it", item)
	}
	a.steps += len(program.Inst)
	return regexp.Compile(anchored)
}

func (a *ReloaderOptIn) readBool(says map[string]string, key string) bool {
	text, set := says[key]
	value, err := strconv.ParseBool(text)
	if set && err != nil {
		a.fault(key, fmt.Sprintf("%.40q is neither true nor false", text))
	}
	return value
}

// fault adds a problem of an annotation, once for all kinds.
func (a *ReloaderOptIn) fault(annotation, problem string) {
	if found := (Fault{Annotation: annotation, Problem: problem}); !slices.Contains(a.faults, found) {
		a.faults = append(a.faults, found)
	}
}

// Tool implements optIn.
func (a *ReloaderOptIn) Tool() spec.Tool { return spec.Reloader }

// Action implements optIn. Reloader only restarts.
func (a *ReloaderOptIn) Action() spec.Action { return spec.Restart }

func (a *ReloaderOptIn) wants(ref object.Ref, mode refs.Mode, tags mark.Tags) bool {
	if a.lists(ref) {
		return true
	}
	consumed := mode != refs.Listed // otherwise another tool lists it
	return consumed && (a.Auto[ref.Kind] || a.Search[ref.Kind] && tags.Match)
}

// exclusionReason returns why the object is excluded, whatever else the owner asks for.
func (a *ReloaderOptIn) exclusionReason(ref object.Ref, tags mark.Tags) spec.Reason {
	switch {
	case tags.Ignore:
		return spec.ReasonIgnored
	case slices.Contains(a.excluded[ref.Kind], ref.Name):
		return spec.ReasonExcluded
	default:
		return ""
	}
}

func (a *ReloaderOptIn) lists(ref object.Ref) bool {
	return slices.Contains(a.Names, ref) || slices.ContainsFunc(a.Patterns, func(p Pattern) bool { return p.Matches(ref) })
}
