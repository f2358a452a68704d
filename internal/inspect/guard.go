package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	protectspec "github.com/headwater-k8s/headwater/protect/spec"
)

// guard is what the static policies of the chart do.
type guard struct {
	// inForce is true if the policy that guards Headwater's own namespace denies there.
	inForce bool
	// writers are the users that it lets write there.
	writers []string
	// notes say what follows from a policy that does not deny.
	notes []string
}

// policiesInForce returns the guard of Headwater's own namespace.
func policiesInForce(ctx context.Context, client kubernetes.Interface, own string) (g guard, err error) {
	policy, why, err := inForce(ctx, client, guardShape(own), protectspec.GuardName)
	switch {
	case err != nil:
		return guard{}, err
	case policy == nil:
		g.notes = append(g.notes, fmt.Sprintf("%s, so who may edit in namespace %s is Headwater", why, own))
	default:
		g.inForce = true
		if err := json.Unmarshal([]byte(policy.Annotations[protectspec.WritersAnnotation]), &g.writers); err != nil {
			g.writers = nil
			g.notes = append(g.notes, fmt.Sprintf("policy %s has no list of users in its annotation %s: it is not known who may change Headwater's workloads", policy.Name, protectspec.WritersAnnotation))
		}
	}
	limit, why, err := inForce(ctx, client, limitShape, protectspec.LimitName, protectspec.LimitUpdatesName)
	if err == nil && limit == nil {
		g.notes = append(g.notes, why+", so who has a token of Headwater may write any Secret and ConfigMap")
	}
	return g, err
}

// inForce returns the policy of that name if the binding of the same name makes it deny
// everywhere, or, with more bindings, each of them makes it deny its part. It is nil
// otherwise; why says what is missing.
func inForce(ctx context.Context, client kubernetes.Interface, needs shape, name string, more ...string) (policy *admissionregistrationv1.ValidatingAdmissionPolicy, why string, err error) {
	api := client.AdmissionregistrationV1()
	policy, err = api.ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
	denies := err == nil && needs.has(policy.Spec)
	for _, bound := range append([]string{name}, more...) {
		if err != nil {
			break
		}
		var binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding
		if binding, err = api.ValidatingAdmissionPolicyBindings().Get(ctx, bound, metav1.GetOptions{}); err == nil {
			denies = denies && binds(binding.Spec, name, len(more) > 0)
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, "policy " + name + " is not in force", nil
	case apierrors.IsForbidden(err):
		return nil, "you may not read whether policy " + name + " is in force", nil
	case err != nil:
		return nil, "", fmt.Errorf("read policy %s: %w", name, err)
	case !denies:
		return nil, "policy " + name + " was changed, and does not deny all that the chart's does", nil
	default:
		return policy, "", nil
	}
}

// binds reports whether the binding makes the policy deny, in part or everywhere.
func binds(spec admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec, policy string, inPart bool) bool {
	return spec.PolicyName == policy && (spec.MatchResources == nil || inPart) && slices.Contains(spec.ValidationActions, admissionregistrationv1.Deny)
}

// shape is what the chart's policy judges.
type shape struct {
	// namespace is the one that it is for; empty if it is for all.
	namespace string
	// conditions is how many it has.
	conditions int
	// about are some of the requests that it judges, those that would open most.
	about []requests
}

// requests are operations on resources of an API group.
type requests struct {
	group      string
	operations []admissionregistrationv1.OperationType
	resources  []string
}

var writes = []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete}

func guardShape(own string) shape {
	starts := writes[:2]
	return shape{namespace: own, about: []requests{
		{"", writes, []string{"secrets", "configmaps", "serviceaccounts", "replicationcontrollers", "services"}},
		{"", writes[:1], []string{"serviceaccounts/token"}},
		{"", starts, []string{"pods", "pods/ephemeralcontainers"}},
		{"", []admissionregistrationv1.OperationType{admissionregistrationv1.Connect}, []string{"pods/exec", "pods/attach"}},
		{"apps", writes, []string{"deployments", "replicasets", "statefulsets", "daemonsets"}},
		{"batch", writes, []string{"jobs", "cronjobs"}},
	}}
}

var limitShape = shape{conditions: 1, about: []requests{{"", writes, []string{"secrets", "configmaps"}}}}

// has reports whether nobody has taken from the policy what it judges: it denies where it
// fails, and leaves nothing out. What its expressions say is not compared.
func (s shape) has(spec admissionregistrationv1.ValidatingAdmissionPolicySpec) bool {
	fails := spec.FailurePolicy != nil && *spec.FailurePolicy == admissionregistrationv1.Fail
	match := spec.MatchConstraints
	if !fails || match == nil || len(match.ExcludeResourceRules) > 0 || !selectsAll(match.ObjectSelector) || !s.isFor(match.NamespaceSelector) {
		return false
	}
	for _, needed := range s.about {
		for _, resource := range needed.resources {
			for _, operation := range needed.operations {
				if !slices.ContainsFunc(match.ResourceRules, func(rule admissionregistrationv1.NamedRuleWithOperations) bool {
					return isAbout(rule, needed.group, resource, operation)
				}) {
					return false
				}
			}
		}
	}
	return len(spec.Validations) > 0 && len(spec.MatchConditions) <= s.conditions
}

// isFor reports whether selector selects the namespace, if by its name alone.
func (s shape) isFor(selector *metav1.LabelSelector) bool {
	return selectsAll(selector) || s.namespace != "" && len(selector.MatchExpressions) == 0 &&
		maps.Equal(selector.MatchLabels, map[string]string{corev1.LabelMetadataName: s.namespace})
}

// isAbout reports whether rule is about that operation on every object of resource, in each
// version. A * stands for no subresource.
func isAbout(rule admissionregistrationv1.NamedRuleWithOperations, group, resource string, operation admissionregistrationv1.OperationType) bool {
	isWhole := len(rule.ResourceNames) == 0 && (rule.Scope == nil || *rule.Scope != admissionregistrationv1.ClusterScope) && slices.Contains(rule.APIVersions, "*")
	return isWhole && (slices.Contains(rule.APIGroups, group) || slices.Contains(rule.APIGroups, "*")) &&
		(slices.Contains(rule.Resources, resource) || slices.Contains(rule.Resources, "*") && !strings.Contains(resource, "/")) &&
		(slices.Contains(rule.Operations, operation) || slices.Contains(rule.Operations, admissionregistrationv1.OperationAll))
}

func selectsAll(selector *metav1.LabelSelector) bool {
	return selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0
}
