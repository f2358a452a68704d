package manifests

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// A policy and its binding share a name: headwater-SUBJECT if they enforce,
// else headwater-SUBJECT-MODE.
const (
	policySources    = "sources"
	policyNamespaces = "namespaces"
	policyClones     = "clones"
	policySelf       = "self"
)

// aboutRules are the subjects of policies that rules ask for.
var aboutRules = []string{policySources, policyNamespaces, policyClones}

// EnforcesRules reports whether a policy of this name denies what a rule forbids.
func EnforcesRules(name string) bool {
	return slices.ContainsFunc(aboutRules, func(subject string) bool { return name == policyName(subject, spec.Enforce) })
}

// PolicyNames lists all names that Headwater gives to policies, sorted.
func PolicyNames() []string {
	names := []string{policyName(policySelf, spec.Enforce)}
	for _, what := range aboutRules {
		for _, mode := range []spec.Mode{spec.Enforce, spec.Warn, spec.Audit} {
			names = append(names, policyName(what, mode))
		}
	}
	slices.Sort(names)
	return names
}

func policyName(subject string, mode spec.Mode) string {
	name := spec.ConfigurationName + "-" + subject
	if spec.Enforces(mode) {
		return name
	}
	return name + "-" + strings.ToLower(string(mode))
}

// Policies returns the ValidatingAdmissionPolicies for the rules in set that
// have one of modes. They give the same verdicts as decide.Decide, even while
// Headwater is down. All fields have the API server's defaults set, so that a
// comparison with live objects finds no difference.
//
// For each mode, the policy for clones is last. The prover tests that one: if
// the policies are written in order and it denies, the others are active too.
//
// A policy cannot look up ClusterRoleBindings or sources. Policies writes what
// world knows of them into the expressions, so the policies must be updated
// when that changes.
func Policies(set *rules.Set[spec.Rule], world decide.World, modes ...spec.Mode) []Policy {
	var all []Policy
	overlap := countOverlaps(set)
	for _, mode := range modes {
		concerned := slices.DeleteFunc(sortedRules(set), func(r spec.Rule) bool { return r.Mode.Strictness() != mode.Strictness() })
		if len(concerned) == 0 {
			continue
		}
		sources := newPolicy(policySources, mode, world)
		sources.protectSources(concerned, overlap)
		namespaces := newPolicy(policyNamespaces, mode, world)
		namespaces.guardNamespaces(concerned, overlap)
		clones := newPolicy(policyClones, mode, world)
		clones.protectClones(concerned, decide.MarksMode(set).Strictness() == mode.Strictness())
		for _, p := range []*policy{sources, namespaces, clones} {
			if len(p.Definition.Spec.Validations) > 0 {
				all = append(all, p.Policy)
			}
		}
	}
	return all
}

// SelfPolicy returns the policy that protects Headwater's webhook
// configuration. The API server calls no webhooks for webhook configurations,
// but it evaluates policies. Nothing can protect the policies themselves.
func SelfPolicy(world decide.World) Policy {
	p := newPolicy(policySelf, spec.Enforce, world)
	p.match(admissionregistrationv1.ClusterScope, admissionregistrationv1.GroupName, []string{"validatingwebhookconfigurations"},
		admissionregistrationv1.Update, admissionregistrationv1.Delete)
	// request.name is not used, because it is empty for deletecollection.
	p.matchOnly("own-configuration", "oldObject.metadata.name == "+literal(spec.ConfigurationName))
	p.refuseUnless("headwater: ValidatingWebhookConfiguration "+spec.ConfigurationName+
		" is Headwater's: only holders of the override permission for every rule may change it", deletedByKubernetes, p.overridden(""))
	return p.Policy
}

// protectSources adds the checks of judge in package decide.
func (p *policy) protectSources(rules []spec.Rule, overlap overlaps) {
	var namespaces, protected []string
	for _, rule := range rules {
		namespaces = append(namespaces, rule.Source.Namespace)
		protected = append(protected, isSource(rule))
	}
	p.match(admissionregistrationv1.NamespacedScope, "", resources(), everyOperation...)
	p.Definition.Spec.MatchConstraints.NamespaceSelector = inNamespaces(namespaces)
	// The condition keeps an error in the evaluation for one object from
	// denying requests for others.
	p.matchOnly("protected-sources", strings.Join(protected, " || "))
	for i, rule := range rules {
		p.refuseUnless(decide.ProtectedMessage(rule, spec.Update, decide.SourceOf(rule)), not(protected[i]),
			p.emptiesNamespace(), p.changesNothingProtected(rule, false), p.allowed(rule.Allow), p.overridden(overlap.bySource(rule)))
		if rule.Message == "" {
			p.setMessageExpression(messageExpression(rule))
		}
	}
}

// guardNamespaces adds the checks of judgeNamespace in package decide.
func (p *policy) guardNamespaces(rules []spec.Rule, overlap overlaps) {
	var guarded []string
	p.match(admissionregistrationv1.ClusterScope, "", []string{"namespaces"}, admissionregistrationv1.Delete)
	for _, rule := range rules {
		if !rule.Guards() || !p.world.HasSource(rule) {
			continue
		}
		guarded = append(guarded, rule.Source.Namespace)
		p.refuseUnless(decide.GuardedMessage(rule), "oldObject.metadata.name != "+literal(rule.Source.Namespace),
			"has(oldObject.metadata.deletionTimestamp)", p.allowed(rule.Allow), p.overridden(overlap.byNamespace(rule)))
	}
	p.matchOnly("guarded-namespaces", oneOf("oldObject.metadata.name", guarded))
}

// protectClones adds the checks of judgeClone in package decide, and those of
// judgeMarks if marks is true.
func (p *policy) protectClones(rules []spec.Rule, marks bool) {
	operations := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	if marks {
		p.refuseUnless(decide.MarksMessage(spec.Update, "the object"), `request.operation == "DELETE"`, not(marksChange), p.overridden(""))
		p.setMessageExpression(fmt.Sprintf("oldObject == null ? %s : %s",
			literal(decide.MarksMessage(spec.Create, "the object")), literal(decide.MarksMessage(spec.Update, "the object"))))
	}
	for _, rule := range rules {
		if rule.Clones != spec.Deny {
			continue
		}
		operations = append(operations, admissionregistrationv1.Delete)
		p.refuseUnless(decide.ProtectedMessage(rule, spec.Update, "a clone of "+decide.SourceOf(rule)), not(isClone(rule)), p.deletedBySystem(),
			p.changesNothingProtected(rule, true), p.allowed(rule.Allow), p.overridden(rule.Name))
	}
	p.match(admissionregistrationv1.NamespacedScope, "", resources(), slices.Compact(operations)...)
	p.Definition.Spec.MatchConstraints.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: mark.CloneLabel, Operator: metav1.LabelSelectorOpExists},
	}}
}
