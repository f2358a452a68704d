package spec

import (
	"fmt"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/internal/stages"
)

// Rule is a compiled rule with a sync section.
type Rule struct {
	rules.Base
	Config
	Namespaces rules.Matcher
	// OwnSource is true for a source in Headwater's own namespace.
	OwnSource bool
	// Stages are those of Delivery; nil without one.
	Stages *stages.Stages
	// ReloadAction is for mark.ReloadAction; empty if the action depends on the consumer.
	ReloadAction string
}

// Compile prepares a validated section. The source namespace and Headwater's
// own are never targets.
func Compile(base rules.Base, config Config, ownNamespace string) (Rule, error) {
	matcher, err := config.Namespaces.Compile(base.Source.Namespace, ownNamespace)
	if err != nil {
		return Rule{}, fmt.Errorf("rule %s: %w", base.Name, err)
	}
	rule := Rule{Base: base, Config: config, Namespaces: matcher, OwnSource: base.Source.Namespace == ownNamespace}
	if config.Delivery != nil {
		if rule.Stages, err = stages.Compile(*config.Delivery); err != nil {
			return Rule{}, fmt.Errorf("rule %s: %w", base.Name, err)
		}
	}
	return rule, nil
}

// KeepsHistory reports whether the revisions of the rule's sources are recorded.
func (r Rule) KeepsHistory() bool { return r.History != nil && *r.History > 0 }

// Tolerates returns in how many of so many namespaces a clone may need attention while
// the rule is ready.
func (r Rule) Tolerates(namespaces int) int { return stages.ShareOf(r.MaxNotReady, namespaces) }

// Into returns the matcher of the namespaces that the rule clones to.
func (r Rule) Into() rules.Matcher { return r.Namespaces }

// targetName returns the name of the clones of source.
func (r Rule) targetName(source string) string {
	if r.Target.Name != "" {
		return r.Target.Name
	}
	return source
}

// FixedName returns the name that all clones of the rule have. known is false if
// each clone has the name of its source.
func (r Rule) FixedName() (name string, known bool) {
	if r.BySelector() {
		return r.Target.Name, r.Target.Name != ""
	}
	return r.targetName(r.Source.Name), true
}

// TargetRef returns the reference of the clone of source in namespace.
func (r Rule) TargetRef(source object.Ref, namespace string) object.Ref {
	return object.Ref{Kind: source.Kind, Namespace: namespace, Name: r.targetName(source.Name)}
}

// SourceOf is the inverse of TargetRef: it returns the only source whose clone the
// rule would name target. The source may not exist, and the rule's selector may
// not match it. ok is false if the rule never clones to that kind and name.
func (r Rule) SourceOf(target object.Ref) (source object.Ref, ok bool) {
	if r.BySelector() {
		source = r.Source.Named(target.Name)
	} else {
		source = r.Source.Ref()
	}
	return source, source.Kind == target.Kind && r.targetName(source.Name) == target.Name
}

// Reaches reports whether the rule clones source to target if it selects the
// target's namespace.
func (r Rule) Reaches(source, target object.Ref) bool {
	from, ok := r.SourceOf(target)
	return ok && from == source
}
