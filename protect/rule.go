package protect

import (
	"slices"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// Rule is what this module sees of a rule.
type Rule struct {
	rules.Base
	Config
	Copied Copied
}

// Copied are globs over the labels and annotations that clones get from their
// source: whoever changes one on the source changes it everywhere.
type Copied struct{ Labels, Annotations []string }

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

// operation is what request does to sources of the rule, empty if nothing. Where
// it cannot be made out which object it is about, it may be any.
func operation(r *Rule, request *Request) Operation {
	ref, known := request.ref()
	if !known {
		return request.Operation
	}
	return operationOn(r, ref, request)
}

// operationOn is operation of a request that is about ref. To make an object a
// source is Create, whichever way.
func operationOn(r *Rule, ref object.Ref, request *Request) Operation {
	switch {
	case request.Old != nil && r.Selects(ref, request.Old.Labels):
		return request.Operation
	case request.New != nil && r.Selects(ref, request.New.Labels):
		return Create
	default:
		return ""
	}
}

// covers reports whether the rule protects from operation. An update may come to
// a deletion.
func (r Rule) covers(operation Operation) bool {
	return r.protects(operation) || operation == Update && r.protects(Delete)
}

// covered lists the operations that the rule protects from.
func (r Rule) covered() []Operation {
	return slices.DeleteFunc(Operations(), func(operation Operation) bool { return !r.covers(operation) })
}

// coveredOfClones lists those that it protects its clones from: to make one is to
// forge its marks.
func (r Rule) coveredOfClones() []Operation {
	return slices.DeleteFunc(r.covered(), func(operation Operation) bool { return operation == Create })
}

// endsBy reports whether an update counts only if it comes to a deletion.
func (r Rule) endsBy(operation Operation) bool { return operation == Update && !r.protects(Update) }

// protects reports whether the rule lists operation.
func (r Rule) protects(operation Operation) bool { return slices.Contains(r.Operations, operation) }
