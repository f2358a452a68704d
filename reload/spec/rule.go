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

// LongestDebounce is that of the rules that may govern an object, and the default
// for those alone whose owners ask.
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

// Rule is what this module sees of a rule.
type Rule struct {
	rules.Base
	Config
	workloads       labels.Selector
	CompiledTargets []CompiledTarget
	// cloneName is nil for a rule without clones, and points to the empty
	// string for one whose clones are named as their sources are.
	cloneName *string
	// ClonedTo are the namespaces that get clones.
	ClonedTo rules.Matcher
}

// Compile prepares a validated section.
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

// ClonedAs is r with clones of that name in the namespaces that to matches; empty:
// named as their sources are.
func (r Rule) ClonedAs(name string, to rules.Matcher) Rule {
	r.cloneName, r.ClonedTo = &name, to
	return r
}

// NameIn is what r's object that has the name source in the source namespace is
// called in namespace; empty: there is none.
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

// SourceOf is the source of ref, which is one of r's objects: a source, or a clone.
func (r Rule) SourceOf(ref object.Ref) object.Ref {
	if ref.Namespace != r.Source.Namespace && !r.BySelector() {
		return r.Source.Ref()
	}
	return r.Source.Named(ref.Name)
}

// ObjectIn is the object of a rule with a named source in namespace: the source,
// or its clone.
func (r Rule) ObjectIn(namespace string) object.Ref {
	return object.Ref{Kind: r.Source.Kind, Namespace: namespace, Name: r.NameIn(namespace, r.Source.Name)}
}

// Pace is the one that the rule sets for each workload.
func (r Rule) Pace() Pace { return newPace(r.MinInterval, r.MaxRestartsPerHour) }
