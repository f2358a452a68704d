package annotations

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/migrate/ir"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// objects finds an object that annotations name.
type objects map[object.Ref]ir.Object

// Indexed returns all, by reference.
func Indexed(all []ir.Object) objects {
	index := objects{}
	for _, o := range all {
		index[o.Ref] = o
	}
	return index
}

// consent is to which namespaces an object may go: those that a pattern, or the
// selector, matches. Neither is all.
type consent struct {
	patterns []string
	selector *metav1.LabelSelector
	// firstMatch is true where of several ways to match one is seen; see
	// FirstMatchOf.
	firstMatch bool
}

// listOf are the entries of an annotation, without those that are empty.
func listOf(annotation string) []string {
	var entries []string
	for entry := range strings.SplitSeq(annotation, ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			entries = append(entries, entry)
		}
	}
	return entries
}

func (c consent) all() bool { return len(c.patterns) == 0 && c.selector == nil }

// terms are the alternatives that c consists of, as globs and selectors. What
// cannot be said as globs is left out, and noted.
func (c consent) terms(f *ir.Finding) []ir.Where {
	if c.all() {
		return []ir.Where{{}}
	}
	var terms []ir.Where
	var names []string
	for _, pattern := range c.patterns {
		names = append(names, c.globs(f, pattern)...)
	}
	if len(names) > 0 {
		terms = append(terms, ir.Where{Names: ir.Distinct(names)})
	}
	if c.selector != nil {
		terms = append(terms, ir.Where{Selector: c.selector})
	}
	return terms
}

func (c consent) globs(f *ir.Finding, pattern string) []string {
	read, err := ir.GlobsOf(pattern)
	if c.firstMatch {
		read, err = ir.FirstMatchOf(pattern)
	}
	switch {
	case err != nil:
		f.RecordLoss(ir.NotAGlob, pattern)
	case read.Less:
		f.RecordLoss(ir.Repeats, pattern, strconv.Itoa(ir.MaxRepeats))
	case !c.firstMatch && choosesOutside(pattern):
		f.Note(ir.OuterAlternatives, pattern, pattern)
	}
	return read.Globs
}

// choosesOutside reports whether the expression has alternatives that are in no
// parentheses.
func choosesOutside(expression string) bool {
	depth := 0
	for _, c := range expression {
		switch c {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case '|':
			if depth == 0 {
				return true
			}
		}
	}
	return false
}

// allows reports whether the name of a namespace alone is reason enough.
func (c consent) allows(namespace string) bool {
	return slices.ContainsFunc(c.patterns, func(pattern string) bool {
		if !c.firstMatch {
			pattern = "^(?:" + pattern + ")$"
		}
		compiled, err := regexp.Compile(pattern)
		return err == nil && compiled.FindString(namespace) == namespace
	})
}

// both are the alternatives that two consents allow together.
func both(f *ir.Finding, a, b []ir.Where) []ir.Where {
	var terms []ir.Where
	for _, one := range a {
		for _, other := range b {
			selector, err := ir.BothSelectors(one.Selector, other.Selector)
			if err != nil {
				continue // no namespace has both
			}
			term := ir.Where{Names: one.Names, Selector: selector}
			switch {
			case one.Wide():
				term.Names = other.Names
			case !other.Wide():
				if term.Names = commonGlobs(f, one.Names, other.Names); len(term.Names) == 0 {
					continue
				}
			}
			terms = append(terms, term)
		}
	}
	return terms
}

// commonGlobs are globs for what both lists match.
func commonGlobs(f *ir.Finding, a, b []string) []string {
	var common []string
	for _, one := range a {
		for _, other := range b {
			switch {
			case one == other, rules.Within(one, other):
				common = append(common, one)
			case rules.Within(other, one):
				common = append(common, other)
			case !ir.Disjoint(one, other):
				f.RecordLoss(ir.OverlapLeft, one, other)
			}
		}
	}
	return ir.Distinct(common)
}

// apart are the same alternatives, where each leaves out what one before it
// selects by name alone: two rules must not clone one source into one namespace.
func apart(terms []ir.Where) []ir.Where {
	var all, others []ir.Where
	var taken []string
	for _, term := range terms {
		if term.Selector != nil || term.Wide() {
			others = append(others, term)
			continue
		}
		all = append(all, term)
		taken = ir.Distinct(taken, term.Names)
	}
	for _, term := range others {
		if !term.Wide() {
			term.Names = slices.DeleteFunc(slices.Clone(term.Names), func(name string) bool {
				return slices.ContainsFunc(taken, func(glob string) bool { return rules.Within(name, glob) })
			})
			if len(term.Names) == 0 {
				continue
			}
		}
		term.Exclude = slices.DeleteFunc(slices.Clone(taken), func(glob string) bool {
			return !term.Wide() && !slices.ContainsFunc(term.Names, func(name string) bool { return !ir.Disjoint(name, glob) })
		})
		all = append(all, term)
	}
	return all
}

// selectorOf reads a label selector as kubectl takes it.
func selectorOf(annotation string) (*metav1.LabelSelector, error) {
	if strings.TrimSpace(annotation) == "" {
		return nil, nil
	}
	selector, err := metav1.ParseToLabelSelector(strings.TrimSpace(annotation))
	if err != nil {
		return nil, ir.Because(ir.BadSelector, strconv.Quote(annotation))
	}
	return ir.PlainSelector(selector), nil
}

// referred reads NAMESPACE/NAME, an object of the same kind.
func referred(kind object.Kind, annotation string) (object.Ref, bool) {
	namespace, name, found := strings.Cut(strings.TrimSpace(annotation), "/")
	return object.Ref{Kind: kind, Namespace: namespace, Name: name}, found && namespace != "" && name != ""
}

// wideExclude keeps what every namespace selects out of kube-*, as Headwater
// does by default.
func wideExclude(f *ir.Finding, w ir.Where) ir.Where {
	if w.Wide() || slices.Contains(w.Names, "*") {
		w.Exclude = append([]string{"kube-*"}, w.Exclude...)
		f.Note(ir.KubeToo, string(f.Tool))
	}
	return w
}

// unknown notes the annotations of a tool that are not understood.
func unknown(f *ir.Finding, annotations map[string]string, prefix string, known ...string) {
	var strange []string
	for key := range annotations {
		if strings.HasPrefix(key, prefix) && !slices.Contains(known, key) {
			strange = append(strange, key)
		}
	}
	slices.Sort(strange)
	for _, key := range strange {
		f.RecordLoss(ir.UnknownAnnotation, key)
	}
}

// pulled is the finding for a copy that names its source, which goes to the
// namespace of the copy alone.
func pulled(tool ir.Tool, copied ir.Object, source object.Ref) ir.Finding {
	f := ir.Finding{
		Tool: tool, From: copied.String(), Source: ir.SourceNamed(source),
		Sync: &ir.SyncPart{Where: ir.Where{Names: []string{ir.Escaped(copied.Namespace)}}, OnSourceDeleted: "Retain"},
	}
	if copied.Namespace == "" {
		f.Sync.Where = ir.Nowhere()
		f.Disable(ir.NamespaceNotSaid, string(copied.Kind)+" "+copied.Name)
	}
	if copied.Name != source.Name {
		f.Sync.TargetName = copied.Name
	}
	f.Note(ir.TwoWriters, copied.Ref.String())
	f.SystemSource()
	return f
}

// Asks reports whether the object asks one of the tools for something.
func Asks(o ir.Object) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(o.Annotations)), func(key string) bool {
		return strings.HasPrefix(key, ReflectorPrefix) || strings.HasPrefix(key, ReplicatorPrefix)
	})
}

// IsClone reports whether a tool, or Headwater, made the object.
func IsClone(o ir.Object) bool {
	_, kyverno := o.Labels["generate.kyverno.io/policy-name"]
	return kyverno || o.Labels[mark.CloneLabel] == "true" || ir.IsTrue(o.Annotations[reflectorAuto])
}
