package spec

import (
	"fmt"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// Rule is what this module sees of a rule.
type Rule struct {
	rules.Base
	Config
	Namespaces rules.Matcher
	// OwnSource is true for a source in Headwater's own namespace.
	OwnSource bool
}

// Compile prepares a validated section. The source namespace and Headwater's
// own are never targets.
func Compile(base rules.Base, config Config, ownNamespace string) (Rule, error) {
	matcher, err := config.Namespaces.Compile(base.Source.Namespace, ownNamespace)
	if err != nil {
		return Rule{}, fmt.Errorf("rule %s: %w", base.Name, err)
	}
	return Rule{Base: base, Config: config, Namespaces: matcher, OwnSource: base.Source.Namespace == ownNamespace}, nil
}

// Into matches the namespaces that the rule clones to.
func (r Rule) Into() rules.Matcher { return r.Namespaces }

// TargetName is the name of the clones of source.
func (r Rule) TargetName(source string) string {
	if r.Target.Name != "" {
		return r.Target.Name
	}
	return source
}

// FixedName is the name that all clones of the rule have; known is false where
// each is called as its source is.
func (r Rule) FixedName() (name string, known bool) {
	if r.BySelector() {
		return r.Target.Name, r.Target.Name != ""
	}
	return r.TargetName(r.Source.Name), true
}

// TargetRef is the clone of source in namespace.
func (r Rule) TargetRef(source object.Ref, namespace string) object.Ref {
	return object.Ref{Kind: source.Kind, Namespace: namespace, Name: r.TargetName(source.Name)}
}

// SourceOf is the inverse of TargetRef: the only source whose clone the rule
// would call target. Whether it is there, and selected, is another question.
func (r Rule) SourceOf(target object.Ref) (source object.Ref, ok bool) {
	if r.BySelector() {
		source = r.Source.Named(target.Name)
	} else {
		source = r.Source.Ref()
	}
	return source, source.Kind == target.Kind && r.TargetName(source.Name) == target.Name
}

// Reaches reports whether the rule, as it is written now, clones source to
// target where the namespace matches.
func (r Rule) Reaches(source, target object.Ref) bool {
	from, ok := r.SourceOf(target)
	return ok && from == source
}
