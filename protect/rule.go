package protect

import (
	"slices"

	"github.com/headwater-k8s/headwater/internal/rules"
)

// Rule is what this module sees of a rule.
type Rule struct {
	rules.Base
	Config
}

// guards reports whether the namespace of the rule's source is to be kept.
func (r Rule) guards() bool { return r.GuardNamespace != nil && *r.GuardNamespace }

// enforced reports whether a violation of the rule is refused.
func (r Rule) enforced() bool { return enforces(r.Mode) }

// exempts reports whether a rule exempts the holders of clusterRole.
func exempts(set *rules.Set[Rule], clusterRole string) bool {
	return slices.ContainsFunc(set.All(), func(r Rule) bool { return slices.Contains(r.Allow.ClusterRoles, clusterRole) })
}

// selectorKeys names the labels that make an object a source of the rule.
func (r Rule) selectorKeys() []string {
	var keys []string
	for _, requirement := range r.Requirements() {
		keys = append(keys, requirement.Key())
	}
	return keys
}

// protects reports whether the rule lists operation.
func (r Rule) protects(operation Operation) bool { return slices.Contains(r.Operations, operation) }
