package kyverno

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/migrate/ir"
)

// KyvernoCELGroup is that of Kyverno's newer policies, which ask in CEL. A
// kind that begins with Namespaced acts in its own namespace alone.
const (
	KyvernoCELGroup = "policies.kyverno.io"

	generatingKind = "GeneratingPolicy"
	validatingKind = "ValidatingPolicy"
	mutatingKind   = "MutatingPolicy"
	namespacedKind = "Namespaced"
)

// CELPolicy is as much of one of Kyverno's newer policies as is translated.
type CELPolicy struct {
	Kind     string            `json:"kind"`
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Evaluation struct {
			Mode                       string `json:"mode"`
			Admission                  toggle `json:"admission"`
			GenerateExisting           toggle `json:"generateExisting"`
			Synchronize                toggle `json:"synchronize"`
			MutateExisting             toggle `json:"mutateExisting"`
			OrphanDownstreamOnDeletion toggle `json:"orphanDownstreamOnPolicyDelete"`
		} `json:"evaluation"`
		MatchConstraints  constraints     `json:"matchConstraints"`
		MatchConditions   []celExpression `json:"matchConditions"`
		Variables         []celExpression `json:"variables"`
		Generate          []celExpression `json:"generate"`
		Validations       []celExpression `json:"validations"`
		ValidationActions []string        `json:"validationActions"`
	} `json:"spec"`
}

type toggle struct {
	Enabled *bool `json:"enabled"`
}

func (t toggle) on() bool { return t.Enabled != nil && *t.Enabled }

// celExpression is an expression, with the name of what it is about, or what
// people are told.
type celExpression struct {
	Name              string   `json:"name"`
	Expression        string   `json:"expression"`
	Message           string   `json:"message"`
	MessageExpression string   `json:"messageExpression"`
	Template          template `json:"template"`
}

// constraints select requests as a ValidatingAdmissionPolicy does.
type constraints struct {
	ResourceRules        []resourceRule        `json:"resourceRules"`
	ExcludeResourceRules []resourceRule        `json:"excludeResourceRules"`
	NamespaceSelector    *metav1.LabelSelector `json:"namespaceSelector"`
	ObjectSelector       *metav1.LabelSelector `json:"objectSelector"`
}

type resourceRule struct {
	APIGroups     []string `json:"apiGroups"`
	APIVersions   []string `json:"apiVersions"`
	Operations    []string `json:"operations"`
	Resources     []string `json:"resources"`
	ResourceNames []string `json:"resourceNames"`
}

// IsCELPolicy reports whether kind, of KyvernoCELGroup, may do one of the jobs
// that are translated.
func IsCELPolicy(kind string) bool {
	return slices.Contains([]string{generatingKind, validatingKind, mutatingKind}, strings.TrimPrefix(kind, namespacedKind))
}

func (p CELPolicy) does(kind string) bool { return strings.TrimPrefix(p.Kind, namespacedKind) == kind }

func (p CELPolicy) namespaced() bool { return strings.HasPrefix(p.Kind, namespacedKind) }

func (p CELPolicy) name() string { return PolicyName(p.Kind, p.Metadata) }

// OfCELPolicy translates p, or says why not.
func OfCELPolicy(p CELPolicy) (found []ir.Finding, left []ir.Left) {
	var err error
	switch {
	case p.Spec.Evaluation.Mode != "" && p.Spec.Evaluation.Mode != "Kubernetes":
		err = ir.Because(ir.OtherJob)
	case p.does(generatingKind):
		found, err = p.generate()
	case p.does(validatingKind) && p.Spec.MatchConstraints.names("secrets", "configmaps"):
		found, err = p.deny()
	case p.changesShared():
		err = ir.Because(ir.MutatesInCEL)
	default:
		err = ir.Because(ir.OtherJob)
	}
	if err != nil {
		return nil, []ir.Left{{From: p.name(), Why: ir.ReasonOf(err)}}
	}
	off := p.Spec.Evaluation.Admission.Enabled != nil && !p.Spec.Evaluation.Admission.on()
	for i := range found {
		found[i].Tool = ir.Kyverno
		if off {
			found[i].Disable(ir.AdmissionOff)
		}
	}
	return found, nil
}

// changesShared reports whether p changes Secrets or ConfigMaps that exist.
func (p CELPolicy) changesShared() bool {
	return p.does(mutatingKind) && p.Spec.Evaluation.MutateExisting.on() && p.Spec.MatchConstraints.names("secrets", "configmaps")
}

// names reports whether one of these resources of the core group may be meant.
func (c constraints) names(resources ...string) bool {
	return slices.ContainsFunc(c.ResourceRules, func(r resourceRule) bool {
		return (slices.Contains(r.APIGroups, "") || slices.Contains(r.APIGroups, "*")) && slices.ContainsFunc(r.Resources, func(resource string) bool {
			return resource == "*" || resource == "*/*" || slices.Contains(resources, resource)
		})
	})
}

// exactly reports whether the rule is about these resources of the core group,
// or some of them, and nothing else.
func (r resourceRule) exactly(resources ...string) bool {
	foreign := func(resource string) bool { return !slices.Contains(resources, resource) }
	return slices.Equal(r.APIGroups, []string{""}) && len(r.Resources) > 0 && !slices.ContainsFunc(r.Resources, foreign) &&
		(slices.Contains(r.APIVersions, "v1") || slices.Contains(r.APIVersions, "*"))
}

// on are the operations of which there are some in r.
func (r resourceRule) on(operations ...string) []string {
	return slices.DeleteFunc(operations, func(operation string) bool {
		return !slices.Contains(r.Operations, operation) && !slices.Contains(r.Operations, "*")
	})
}
