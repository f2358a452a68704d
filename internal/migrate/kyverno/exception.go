package kyverno

import (
	"path"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/migrate/ir"
)

// ExceptionKind is the kind of an exception to policies.
const ExceptionKind = "PolicyException"

// PolicyException is as much of one, of either group, as the summary shows.
type PolicyException struct {
	Kind     string            `json:"kind"`
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Exceptions []struct {
			PolicyName string `json:"policyName"`
		} `json:"exceptions"`
		PolicyRefs []struct {
			Name string `json:"name"`
		} `json:"policyRefs"`
	} `json:"spec"`
}

// Excepted tells of exceptions to policies of these names, which no rule here can
// say.
func Excepted(names []string, exceptions []PolicyException) []ir.Left {
	var left []ir.Left
	for _, exception := range exceptions {
		var to []string
		for _, e := range exception.Spec.Exceptions {
			to = append(to, e.PolicyName)
		}
		for _, e := range exception.Spec.PolicyRefs {
			to = append(to, e.Name)
		}
		for _, pattern := range ir.Distinct(to) {
			if slices.ContainsFunc(names, func(name string) bool { is, _ := path.Match(pattern, name); return is }) {
				left = append(left, ir.Left{From: PolicyName(exception.Kind, exception.Metadata), Why: ir.Because(ir.Exempted, pattern)})
			}
		}
	}
	return left
}
