package kyverno

import (
	"fmt"
	"path"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/migrate/ir"
)

// ExceptionKind is the kind of an exception to policies.
const ExceptionKind = "PolicyException"

// PolicyException is as much of one, of either group, as is told.
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

// Excepted tells of exceptions to policies that were found, which no rule here
// can say.
func Excepted(policies []Policy, celPolicies []CELPolicy, exceptions []PolicyException) []ir.Left {
	var names []string
	for _, policy := range policies {
		names = append(names, policy.Metadata.Name, policy.Metadata.Namespace+"/"+policy.Metadata.Name)
	}
	for _, policy := range celPolicies {
		names = append(names, policy.Metadata.Name)
	}
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
				left = append(left, ir.Left{From: PolicyName(exception.Kind, exception.Metadata), Why: fmt.Sprintf(
					"what it exempts from policy %s is not exempt here; name people under protect.allow, and namespaces under sync.namespaces.exclude", pattern)})
			}
		}
	}
	return left
}
