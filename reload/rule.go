package reload

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// Rule is what this module sees of a rule.
type Rule struct {
	rules.Base
	Config
	workloads labels.Selector
	targets   []target
	// cloneName is nil for a rule without clones, and points to the empty
	// string for one whose clones are named as their sources are.
	cloneName *string
	// clonedTo are the namespaces that get clones.
	clonedTo rules.Matcher
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
		compiled, err := compileTarget(declared)
		if err != nil {
			return Rule{}, fmt.Errorf("rule %s: %w", base.Name, err)
		}
		rule.targets = append(rule.targets, compiled)
	}
	return rule, nil
}

// ClonedAs is r with clones of that name in the namespaces that to matches; empty:
// named as their sources are.
func (r Rule) ClonedAs(name string, to rules.Matcher) Rule {
	r.cloneName, r.clonedTo = &name, to
	return r
}

// nameIn is what r's object that has the name source in the source namespace is
// called in namespace; empty: there is none.
func (r Rule) nameIn(namespace, source string) string {
	switch {
	case namespace == r.Source.Namespace:
		return source
	case r.cloneName == nil:
		return ""
	default:
		return cmp.Or(*r.cloneName, source)
	}
}

// sourceOf is the source of ref, which is one of r's objects: a source, or a clone.
func (r Rule) sourceOf(ref object.Ref) object.Ref {
	if ref.Namespace != r.Source.Namespace && !r.BySelector() {
		return r.Source.Ref()
	}
	return r.Source.Named(ref.Name)
}

// objectIn is the object of a rule with a named source in namespace: the source,
// or its clone.
func (r Rule) objectIn(namespace string) object.Ref {
	return object.Ref{Kind: r.Source.Kind, Namespace: namespace, Name: r.nameIn(namespace, r.Source.Name)}
}

// pace is the one that the rule sets for each workload.
func (r Rule) pace() Pace { return newPace(r.MinInterval, r.MaxRestartsPerHour) }
