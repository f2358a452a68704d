package spec

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
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

func (r Rule) debounce() time.Duration {
	if r.Debounce == nil {
		return DefaultDebounce
	}
	return r.Debounce.Duration
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
	CompiledTargets []CompiledTarget
	// cloneName is nil for a rule without clones. It points to the empty string if
	// clones have the name of their source.
	cloneName *string
	// ClonedTo matches the namespaces that get clones.
	ClonedTo rules.Matcher
	// Delivered is true if sync delivers revisions of the sources stage by stage, and
	// its gate asks for the health of consumers.
	Delivered bool
}

// Compile compiles a validated section.
func Compile(base rules.Base, config Config) (Rule, error) {
	selector := labels.Everything()
	if config.Workloads.Selector != nil {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(config.Workloads.Selector); err != nil {
			return Rule{}, fmt.Errorf("rule %s: workload selector: %w", base.Name, err)
		}
	}
	rule := Rule{Base: base, Config: config, workloads: selector}
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
func (r Rule) Pace() Pace { return newPace(r.MinInterval, r.MaxRestartsPerHour) }
