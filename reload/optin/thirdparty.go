package optin

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// optIn is a reason to reload a workload without a rule.
type optIn interface {
	Tool() spec.Tool
	// Action is how to reload; empty means no preference.
	Action() spec.Action
	// wants reports whether a change of ref, which has these tags, reloads a workload that
	// consumes it in mode, unless exclusionReason says why not.
	wants(ref object.Ref, mode refs.Mode, tags mark.Tags) bool
	exclusionReason(ref object.Ref, tags mark.Tags) spec.Reason
}

// excludesNothing is embedded in opt-ins without exclusions.
type excludesNothing struct{}

func (excludesNothing) exclusionReason(object.Ref, mark.Tags) spec.Reason { return "" }

// Pattern lists objects of one kind by a regular expression.
type Pattern struct {
	kind object.Kind
	name *regexp.Regexp
}

// Matches reports whether ref has the kind of p and a name that its expression matches.
func (p Pattern) Matches(ref object.Ref) bool {
	return p.kind == ref.Kind && p.name.MatchString(ref.Name)
}

// ThirdParty is what the owner of a workload sets by annotations of other tools,
// whether they are enabled or not.
type ThirdParty struct {
	// annotations are those of the workload, template those of its pods.
	annotations, template map[string]string
	reloader              *ReloaderOptIn
	wave                  *waveOptIn
}

// ReadThirdParty reads the annotations of a workload and of its pod template; nil if
// other tools have none there.
func ReadThirdParty(kind kinds.Kind, namespace string, annotations, template map[string]string) *ThirdParty {
	annotations, template = mark.ForTools(annotations), mark.ForTools(template)
	if annotations == nil && template == nil {
		return nil
	}
	return &ThirdParty{
		annotations: annotations, template: template,
		reloader: ReadReloader(kind, namespace, annotations, template), wave: readWave(namespace, annotations),
	}
}

// DisabledTools returns the tools whose annotations are used but not enabled.
func (f *ThirdParty) DisabledTools(settings spec.Settings) (tools []spec.Tool) {
	if f == nil {
		return nil
	}
	spoken := map[spec.Tool]bool{}
	for _, annotations := range []map[string]string{f.annotations, f.template} {
		for annotation := range annotations {
			spoken[spec.Reloader] = spoken[spec.Reloader] || mark.ForReloader(annotation)
			spoken[spec.Wave] = spoken[spec.Wave] || !mark.ForReloader(annotation)
		}
	}
	for _, tool := range []spec.Tool{spec.Reloader, spec.Wave} {
		if spoken[tool] && !settings.Honours(tool) {
			tools = append(tools, tool)
		}
	}
	return tools
}

// Equal reports whether f and other have the same annotations.
func (f *ThirdParty) Equal(other *ThirdParty) bool {
	if f == nil || other == nil {
		return f == other
	}
	return maps.Equal(f.annotations, other.annotations) && maps.Equal(f.template, other.template)
}

// Lists returns the objects that the owner lists by name.
func (f *ThirdParty) Lists() []object.Ref {
	if f == nil {
		return nil
	}
	return slices.Concat(f.reloader.Names, f.wave.extras)
}

// Patterns returns the patterns by which the owner lists objects.
func (f *ThirdParty) Patterns() []Pattern {
	if f == nil {
		return nil
	}
	return f.reloader.Patterns
}

// firstOf returns the items of a list that count, and the fault of a longer list.
func firstOf(annotation string, list []string) (first []string, faults []Fault) {
	if len(list) > mark.MaxListed {
		faults = append(faults, Fault{Annotation: annotation, InPart: true, Problem: fmt.Sprintf(
			"it lists %d objects, of which only the first %d count", len(list), mark.MaxListed)})
	}
	return list[:min(len(list), mark.MaxListed)], faults
}

// items splits value at commas, and drops blanks and empty items.
func items(value string) []string {
	var found []string
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			found = append(found, item)
		}
	}
	return found
}
