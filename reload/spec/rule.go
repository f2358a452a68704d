package spec

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/internal/stages"
)

// LongestDebounce returns the longest debounce of the governing rules, or
// DefaultDebounce if there are none.
func LongestDebounce(governing []Rule) time.Duration {
	if len(governing) == 0 {
		return DefaultDebounce
	}
	var longest time.Duration
	for _, rule := range governing {
		longest = max(longest, rule.debounce())
	}
	return longest
}

// DefaultDebounce applies if a rule sets no debounce, and to changes that no rule
// governs.
const DefaultDebounce = time.Second

// debounce is at most ShortDebounce. The rest of a longer one is the rule's pace.
func (r Rule) debounce() time.Duration {
	if r.Debounce == nil {
		return DefaultDebounce
	}
	return min(r.Debounce.Duration, ShortDebounce)
}

// SelectsWorkload reports whether the rule applies to a workload with these labels.
func (r Rule) SelectsWorkload(of labels.Set) bool {
	return r.workloads == nil || r.workloads.Matches(of)
}

// Rule is the part of a rule that this module uses.
type Rule struct {
	rules.Base
	Config
	workloads       labels.Selector
	openWindows     []Windows
	CompiledTargets []CompiledTarget
	// cloneName is nil for a rule without clones. It points to the empty string if
	// clones have the name of their source.
	cloneName *string
	// ClonedTo matches the namespaces that get clones.
	ClonedTo rules.Matcher
	// CloneKeys are the keys that clones have; empty if they have those of the source.
	CloneKeys []CloneKey
	// Stages are those of the delivery, with its gate; nil without one.
	Stages *stages.Stages
}

// CloneKey is a key of the source, and its name in clones.
type CloneKey struct{ From, To string }

// AsCloned returns the digests of a clone of the content with these digests.
func (r Rule) AsCloned(source object.Digests) object.Digests {
	if len(r.CloneKeys) == 0 {
		return source
	}
	var clone object.Digests
	for _, key := range r.CloneKeys {
		if sum, found := source.Sum(key.From); found {
			clone = append(clone, object.KeyDigest{Key: key.To, Sum: sum})
		}
	}
	slices.SortFunc(clone, func(a, b object.KeyDigest) int { return cmp.Compare(a.Key, b.Key) })
	return clone
}

// NeedsEvidence reports whether the revisions of the sources are delivered stage by stage,
// and the gate asks about consumers.
func (r Rule) NeedsEvidence() bool {
	return !r.Suspended && r.Stages.NeedsEvidence()
}

// ActionIn returns the action for consumers in a namespace with these labels. A stage can
// ask for restarts, so that it shows that they start with a revision.
func (r Rule) ActionIn(namespace string, namespaceLabels map[string]string) Action {
	staged := r.Stages != nil && namespace != r.Source.Namespace && r.Action != None && r.Action != Never
	if staged && r.Stages.Restart(r.Stages.Of(namespace, namespaceLabels)) {
		return Restart
	}
	return r.Action
}

// CommonAction returns the action for every consumer; empty if there is none, because
// some consumers are not selected or some stages ask for another.
func (r Rule) CommonAction() string {
	if r.Workloads.Selector != nil || r.Stages != nil && r.Action != None && r.Stages.Restarts() {
		return ""
	}
	return string(r.Action)
}

// Compile compiles a validated section.
func Compile(base rules.Base, config Config) (Rule, error) {
	selector, err := compileSelector(config.Workloads.Selector)
	if err != nil {
		return Rule{}, fmt.Errorf("rule %s: workload selector: %w", base.Name, err)
	}
	rule := Rule{Base: base, Config: config, workloads: selector}
	if len(config.Windows) > 0 {
		rule.openWindows = []Windows{compileWindows(config.Windows)}
	}
	for _, declared := range config.Targets {
		compiled, err := CompileTarget(declared)
		if err != nil {
			return Rule{}, fmt.Errorf("rule %s: %w", base.Name, err)
		}
		rule.CompiledTargets = append(rule.CompiledTargets, compiled)
	}
	return rule, nil
}

// ClonedAs returns r with clones of that name in the namespaces that to matches. An
// empty name means the name of the source.
func (r Rule) ClonedAs(name string, to rules.Matcher) Rule {
	r.cloneName, r.ClonedTo = &name, to
	return r
}

// NameIn returns the name that the object of r has in namespace, for the source with
// the given name. It is empty if there is none.
func (r Rule) NameIn(namespace, source string) string {
	switch {
	case namespace == r.Source.Namespace:
		return source
	case r.cloneName == nil:
		return ""
	default:
		return cmp.Or(*r.cloneName, source)
	}
}

// SourceOf returns the source of ref, which is a source or a clone of r.
func (r Rule) SourceOf(ref object.Ref) object.Ref {
	if ref.Namespace != r.Source.Namespace && !r.BySelector() {
		return r.Source.Ref()
	}
	return r.Source.Named(ref.Name)
}

// ObjectIn returns the object in namespace of a rule with a named source: the source or
// its clone.
func (r Rule) ObjectIn(namespace string) object.Ref {
	return object.Ref{Kind: r.Source.Kind, Namespace: namespace, Name: r.NameIn(namespace, r.Source.Name)}
}

// Pace returns the limits that the rule sets for each workload.
func (r Rule) Pace() Pace {
	pace := newPace(r.MinInterval, r.MaxRestartsPerHour)
	if r.Debounce != nil && r.Debounce.Duration > ShortDebounce {
		pace.Quiet = r.Debounce.Duration
	}
	pace.Windows = r.openWindows
	return pace
}
