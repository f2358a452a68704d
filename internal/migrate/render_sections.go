package migrate

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/internal/migrate/ir"
	"github.com/headwater-k8s/headwater/internal/object"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
)

// migratedSection is a section of reload.namespaces.
type migratedSection struct {
	From []string
	Part ir.SectionPart
	// Notes say what is not as it was.
	Notes []ir.Reason
	// Off is why the section is a comment; none: it is in force.
	Off ir.Reason
}

type (
	sectionKeys struct {
		Include   []string          `yaml:"include,omitempty,flow"`
		Exclude   *[]string         `yaml:"exclude,omitempty,flow"`
		Selector  *selectorKeys     `yaml:"selector,omitempty,flow"`
		Action    reloadspec.Action `yaml:"action"`
		Workloads *workloadsKeys    `yaml:"workloads,omitempty,flow"`
		Objects   *objectsKeys      `yaml:"objects,omitempty,flow"`
	}
	objectsKeys struct {
		Kinds    []object.Kind `yaml:"kinds,omitempty,flow"`
		Include  []string      `yaml:"include,omitempty,flow"`
		Selector *selectorKeys `yaml:"selector,omitempty,flow"`
	}
)

func sectionKeysOf(s ir.SectionPart) sectionKeys {
	namespaces := namespaceKeys(s.Where)
	keys := sectionKeys{Include: namespaces.Include, Exclude: namespaces.Exclude, Selector: namespaces.Selector, Action: s.Action}
	if selector := selectorKeysOf(s.Workloads); selector != nil {
		keys.Workloads = &workloadsKeys{Selector: selector}
	}
	objects := objectsKeys{Include: s.Names, Selector: selectorKeysOf(s.Objects)}
	if len(s.Kinds) < len(object.Kinds) {
		objects.Kinds = s.Kinds
	}
	if objects.Kinds != nil || objects.Include != nil || objects.Selector != nil {
		keys.Objects = &objects
	}
	return keys
}

// renderSections writes the file's reload section, as a comment if nothing in it
// is in force. Where two sections are about an object the first counts, and Auto
// does what Refresh does.
func (r Result) renderSections(out *bytes.Buffer) error {
	if len(r.Sections) == 0 {
		return nil
	}
	sections := slices.Clone(r.Sections)
	slices.SortStableFunc(sections, func(a, b migratedSection) int { return rank(a) - rank(b) })
	lead := ""
	if !slices.ContainsFunc(sections, func(s migratedSection) bool { return s.Off.None() }) {
		lead = "# "
	}
	out.WriteString("\n" + lead + "reload:\n" + lead + "  namespaces:\n")
	for _, section := range sections {
		comment(out, "  ", "From "+strings.Join(section.From, "; ")+".")
		for _, note := range section.Notes {
			comment(out, "  ", note.String())
		}
		text, err := encode([]sectionKeys{sectionKeysOf(section.Part)})
		if err != nil {
			return fmt.Errorf("write a section of reload.namespaces: %w", err)
		}
		if !section.Off.None() {
			comment(out, "  ", "NOT IN FORCE: "+section.Off.String())
			out.WriteString(commented(indented(text), ""))
			continue
		}
		out.WriteString(indented(text))
	}
	return nil
}

func rank(s migratedSection) int {
	if s.Part.Action == reloadspec.Refresh {
		return 1
	}
	return 0
}

func indented(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString("  " + line)
	}
	return out.String()
}
