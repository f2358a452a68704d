package spec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// HasRules reports whether at least one rule is loaded.
func HasRules(live *rules.Live[Rule]) bool { return len(live.Load().All()) > 0 }

// SubjectOf returns the object of an Event about a whole rule: its source, or
// the source namespace if the rule selects its sources by label.
func SubjectOf(rule Rule, source func(object.Ref) (*object.Full, bool)) *corev1.ObjectReference {
	ref := rule.Source.Ref()
	if rule.BySelector() {
		return &corev1.ObjectReference{APIVersion: "v1", Kind: string(KindNamespace), Namespace: ref.Namespace, Name: ref.Namespace}
	}
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: string(ref.Kind), Namespace: ref.Namespace, Name: ref.Name}
	if known, _ := source(ref); known != nil {
		about.UID = known.UID
	}
	return about
}

// Rule is a rule as the protect module needs it.
type Rule struct {
	rules.Base
	Config
	Copied Copied
}

// Copied are globs over the keys of labels and annotations that sync copies
// from a source to its clones. Changing such a key on the source changes every
// clone.
type Copied struct{ Labels, Annotations []string }

// Guards reports whether the rule protects the source's namespace from
// deletion.
func (r Rule) Guards() bool { return r.GuardNamespace != nil && *r.GuardNamespace }

// Enforced reports whether the rule denies violations.
func (r Rule) Enforced() bool { return Enforces(r.Mode) }

// Exempts reports whether any rule in set exempts the holders of clusterRole.
func Exempts(set *rules.Set[Rule], clusterRole string) bool {
	return slices.ContainsFunc(set.All(), func(r Rule) bool { return slices.Contains(r.Allow.ClusterRoles, clusterRole) })
}

// SelectorKeys returns the keys of the rule's label selector.
func (r Rule) SelectorKeys() []string {
	var keys []string
	for _, requirement := range r.Requirements() {
		keys = append(keys, requirement.Key())
	}
	return keys
}

// Covers reports whether the rule can deny operation. An update can amount to a
// deletion, so a rule that protects from Delete also covers Update.
func (r Rule) Covers(operation Operation) bool {
	return r.Protects(operation) || operation == Update && r.Protects(Delete)
}

// Covered lists the operations that the rule can deny on its sources.
func (r Rule) Covered() []Operation {
	return slices.DeleteFunc(Operations(), func(operation Operation) bool { return !r.Covers(operation) })
}

// CoveredOfClones lists the operations that the rule can deny on its clones.
// Create is missing: creating a clone is forging its marks, which is checked
// separately.
func (r Rule) CoveredOfClones() []Operation {
	return slices.DeleteFunc(r.Covered(), func(operation Operation) bool { return operation == Create })
}

// OnlyDeletionCounts reports whether the rule denies operation only if it
// amounts to a deletion. This applies to updates under a rule that protects
// from Delete but not from Update.
func (r Rule) OnlyDeletionCounts(operation Operation) bool {
	return operation == Update && !r.Protects(Update)
}

// Protects reports whether the rule's operations list contains operation.
func (r Rule) Protects(operation Operation) bool { return slices.Contains(r.Operations, operation) }
