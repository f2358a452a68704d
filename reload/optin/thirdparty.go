package optin

import (
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

// OptIn is what is asked for a workload, of one tool.
type OptIn interface {
	Tool() spec.Tool
	// action is how to reload; empty where the owner leaves that open.
	Action() spec.Action
	// covers reports whether a change of ref, which bears tags, is to reload the
	// workload that consumes it in mode.
	matches(ref object.Ref, mode refs.Mode, tags mark.Tags) bool
}

// Pattern is one by which an owner lists objects of a kind.
type Pattern struct {
	kind object.Kind
	name *regexp.Regexp
}

// Matches reports whether ref has the kind of p and a name that its expression matches.
func (p Pattern) Matches(ref object.Ref) bool {
	return p.kind == ref.Kind && p.name.MatchString(ref.Name)
}

// ThirdParty is what the owner of a workload tells other tools than Headwater,
// whether these are honoured or not.
type ThirdParty struct {
	// annotations and template are those of the workload and of its pods.
	annotations, template map[string]string
	reloader              *ReloaderOptIn
	wave                  *waveOptIn
}

// ReadThirdParty reads the annotations of a workload and of its pod template; nil
// when there are none for other tools.
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

// DisabledTools are the tools that the owner speaks to and that are not honoured.
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

// Equal reports whether f and other say the same.
func (f *ThirdParty) Equal(other *ThirdParty) bool {
	if f == nil || other == nil {
		return f == other
	}
	return maps.Equal(f.annotations, other.annotations) && maps.Equal(f.template, other.template)
}

// Lists are the objects that the owner names.
func (f *ThirdParty) Lists() []object.Ref {
	if f == nil {
		return nil
	}
	return slices.Concat(f.reloader.Names, f.wave.extras)
}

// Patterns are those by which the owner lists objects.
func (f *ThirdParty) Patterns() []Pattern {
	if f == nil {
		return nil
	}
	return f.reloader.Patterns
}

// items are what is between the commas of value, blanks and what is empty left
// out.
func items(value string) []string {
	var found []string
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			found = append(found, item)
		}
	}
	return found
}
