package spec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// HasRules reports whether at least one rule is loaded.
func HasRules(live *rules.Live[Rule]) bool { return len(live.Load().All()) > 0 }

// SubjectOf is what an Event about rule as a whole is about: its source, or the
// namespace of the sources that it selects.
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

// Rule is what this module sees of a rule.
type Rule struct {
	rules.Base
	Config
	Copied Copied
}

// Copied are globs over the labels and annotations that clones get from their
// source: whoever changes one on the source changes it everywhere.
type Copied struct{ Labels, Annotations []string }

// Guards reports whether the namespace of the rule's source is to be kept.
func (r Rule) Guards() bool { return r.GuardNamespace != nil && *r.GuardNamespace }

// Enforced reports whether a violation of the rule is refused.
func (r Rule) Enforced() bool { return Enforces(r.Mode) }

// Exempts reports whether a rule exempts the holders of clusterRole.
func Exempts(set *rules.Set[Rule], clusterRole string) bool {
	return slices.ContainsFunc(set.All(), func(r Rule) bool { return slices.Contains(r.Allow.ClusterRoles, clusterRole) })
}

// SelectorKeys names the labels that make an object a source of the rule.
func (r Rule) SelectorKeys() []string {
	var keys []string
	for _, requirement := range r.Requirements() {
		keys = append(keys, requirement.Key())
	}
	return keys
}

// Covers reports whether the rule protects from operation. An update may come to
// a deletion.
func (r Rule) Covers(operation Operation) bool {
	return r.Protects(operation) || operation == Update && r.Protects(Delete)
}

// Covered lists the operations that the rule protects from.
func (r Rule) Covered() []Operation {
	return slices.DeleteFunc(Operations(), func(operation Operation) bool { return !r.Covers(operation) })
}

// CoveredOfClones lists those that it protects its clones from: to make one is to
// forge its marks.
func (r Rule) CoveredOfClones() []Operation {
	return slices.DeleteFunc(r.Covered(), func(operation Operation) bool { return operation == Create })
}

// OnlyDeletionCounts reports whether an update counts only if it comes to a deletion.
func (r Rule) OnlyDeletionCounts(operation Operation) bool {
	return operation == Update && !r.Protects(Update)
}

// Protects reports whether the rule lists operation.
func (r Rule) Protects(operation Operation) bool { return slices.Contains(r.Operations, operation) }
