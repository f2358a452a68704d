package inspect

import (
	"fmt"
	"path"
	"slices"
	"strings"

	syncspec "github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Scope is the part of the cluster that a Status is about.
type Scope struct {
	// Rule is the name of the only rule; empty means all rules.
	Rule string
	// Namespaces are names and globs of the only target namespaces; none means all.
	Namespaces []string
}

// Validate reports a glob that cannot be read.
func (s Scope) Validate() error {
	for _, glob := range s.Namespaces {
		if _, err := path.Match(glob, ""); err != nil || glob == "" {
			return fmt.Errorf("target namespace %q is no name or glob", glob)
		}
	}
	return nil
}

func (s Scope) hasRule(name string) bool { return s.Rule == "" || s.Rule == name }

func (s Scope) hasNamespace(name string) bool {
	return len(s.Namespaces) == 0 || slices.ContainsFunc(s.Namespaces, func(glob string) bool {
		matched, err := path.Match(glob, name)
		return matched && err == nil
	})
}

func (s Scope) has(cloneStatus survey.CloneStatus) bool {
	return s.hasRule(cloneStatus.Rule) && s.hasNamespace(cloneStatus.Target.Namespace)
}

// names are those of Namespaces that are no globs.
func (s Scope) names() []string {
	return slices.DeleteFunc(slices.Clone(s.Namespaces), func(glob string) bool { return strings.ContainsAny(glob, `*?[\`) })
}

// reaches reports whether rule selects a namespace of the scope.
func (i *Inspector) reaches(scope Scope, rule syncspec.Rule) bool {
	if len(scope.Namespaces) == 0 {
		return true
	}
	for _, namespace := range i.caches.Namespaces.List() {
		if scope.hasNamespace(namespace.Name) && rule.Into().Matches(namespace.Name, namespace.Labels) {
			return true
		}
	}
	return false
}

// unknownRule is an error when scope is about a rule that neither the
// configuration nor a clone names.
func (i *Inspector) unknownRule(scope Scope, found []*RuleStatus) error {
	var names []string
	for _, base := range i.bases {
		names = append(names, base.Name)
	}
	if scope.Rule == "" || slices.Contains(names, scope.Rule) ||
		slices.ContainsFunc(found, func(r *RuleStatus) bool { return r.Name == scope.Rule }) {
		return nil
	}
	return fmt.Errorf("no rule %q in the configuration, and no clone of such a rule; rules: %s", scope.Rule, strings.Join(names, ", "))
}
