package reload

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// Tool is who asks for a workload to be reloaded: its owner, by the annotations
// of a tool, or the configuration.
type Tool string

// The tools. The annotations of Headwater itself need no Settings.Compatibility.
const (
	Headwater Tool = "Headwater"
	Reloader  Tool = "Reloader"
	Wave      Tool = "Wave"
	// Sections are those of the configuration's reload.namespaces.
	Sections Tool = "Namespaces"
)

// ask is what is asked for a workload, of one tool.
type ask interface {
	tool() Tool
	// action is how to reload; empty where the owner leaves that open.
	action() Action
	// covers reports whether a change of ref, which bears tags, is to reload the
	// workload that consumes it in mode.
	covers(ref object.Ref, mode Mode, tags mark.Tags) bool
}

// pattern is one by which an owner lists objects of a kind.
type pattern struct {
	kind object.Kind
	name *regexp.Regexp
}

func (p pattern) matches(ref object.Ref) bool {
	return p.kind == ref.Kind && p.name.MatchString(ref.Name)
}

// foreign is what the owner of a workload tells other tools than Headwater,
// whether these are honoured or not.
type foreign struct {
	// annotations and template are those of the workload and of its pods.
	annotations, template map[string]string
	reloader              *reloaderAsk
	wave                  *waveAsk
}

// readForeign reads the annotations of a workload and of its pod template; nil
// when there are none for other tools.
func readForeign(kind Kind, namespace string, annotations, template map[string]string) *foreign {
	annotations, template = mark.ForTools(annotations), mark.ForTools(template)
	if annotations == nil && template == nil {
		return nil
	}
	return &foreign{
		annotations: annotations, template: template,
		reloader: readReloader(kind, namespace, annotations, template), wave: readWave(namespace, annotations),
	}
}

// unheard are the tools that the owner speaks to and that are not honoured.
func (f *foreign) unheard(settings Settings) (tools []Tool) {
	if f == nil {
		return nil
	}
	spoken := map[Tool]bool{}
	for _, annotations := range []map[string]string{f.annotations, f.template} {
		for annotation := range annotations {
			spoken[Reloader] = spoken[Reloader] || mark.ForReloader(annotation)
			spoken[Wave] = spoken[Wave] || !mark.ForReloader(annotation)
		}
	}
	for _, tool := range []Tool{Reloader, Wave} {
		if spoken[tool] && !settings.honours(tool) {
			tools = append(tools, tool)
		}
	}
	return tools
}

// equal reports whether f and other say the same.
func (f *foreign) equal(other *foreign) bool {
	if f == nil || other == nil {
		return f == other
	}
	return maps.Equal(f.annotations, other.annotations) && maps.Equal(f.template, other.template)
}

// lists are the objects that the owner names.
func (f *foreign) lists() []object.Ref {
	if f == nil {
		return nil
	}
	return slices.Concat(f.reloader.names, f.wave.extras)
}

// patterns are those by which the owner lists objects.
func (f *foreign) patterns() []pattern {
	if f == nil {
		return nil
	}
	return f.reloader.patterns
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
