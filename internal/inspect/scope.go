package inspect

import (
	"fmt"
	"path"
	"slices"
	"strings"

	syncspec "github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Scope limits a Status to part of the cluster.
type Scope struct {
	// Rule limits it to one rule; empty means all rules.
	Rule string
	// Namespaces limits it to these target namespaces, names or globs; empty means all.
	Namespaces []string
}

// Validate reports an invalid glob.
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

// names returns the Namespaces that are not globs.
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

// unknownRule returns an error if neither the configuration nor a clone names the
// rule of scope.
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
