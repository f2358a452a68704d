package manifests

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// The policies and their bindings, which bear the same names, are called
// headwater-WHAT, and headwater-WHAT-MODE where they do not enforce.
const (
	policySources    = "sources"
	policyNamespaces = "namespaces"
	policyClones     = "clones"
	policySelf       = "self"
)

// PolicyNames lists every name that a policy of Headwater may bear.
func PolicyNames() []string {
	names := []string{policyName(policySelf, spec.Enforce)}
	for _, what := range []string{policySources, policyNamespaces, policyClones} {
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

// Policies returns the ValidatingAdmissionPolicies that give the verdicts of
// Decide while nobody answers, for the rules of these modes, every field that
// the API server would default included. For each mode the clones' comes last: who
// writes them in this order, and sees that one refuse, knows that the others do.
//
// What Decide looks up, a policy cannot: whom a ClusterRole is bound to, and
// whether a namespace holds a source, is written into it as world has it now.
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

// SelfPolicy refuses to others to change what keeps them out: webhooks are not
// asked about webhook configurations, policies are. About policies, nothing is.
func SelfPolicy(world decide.World) Policy {
	p := newPolicy(policySelf, spec.Enforce, world)
	p.match(admissionregistrationv1.ClusterScope, admissionregistrationv1.GroupName, []string{"validatingwebhookconfigurations"},
		admissionregistrationv1.Update, admissionregistrationv1.Delete)
	// Not by resource name, which a request to delete a collection lacks.
	p.matchOnly("own-configuration", "oldObject.metadata.name == "+literal(spec.ConfigurationName))
	p.refuseUnless("headwater: ValidatingWebhookConfiguration "+spec.ConfigurationName+
		" is Headwater's: only holders of the override permission for every rule may change it", deletedByKubernetes, p.overridden(""))
	return p.Policy
}

// protectSources has p judge as judge does.
func (p *policy) protectSources(rules []spec.Rule, overlap overlaps) {
	var namespaces, protected []string
	for _, rule := range rules {
		namespaces = append(namespaces, rule.Source.Namespace)
		protected = append(protected, isSource(rule))
	}
	p.match(admissionregistrationv1.NamespacedScope, "", resources(), everyOperation...)
	p.Definition.Spec.MatchConstraints.NamespaceSelector = inNamespaces(namespaces)
	// So that an error about one object can refuse no other.
	p.matchOnly("protected-sources", strings.Join(protected, " || "))
	for i, rule := range rules {
		p.refuseUnless(decide.ProtectedMessage(rule, spec.Update, decide.SourceOf(rule)), not(protected[i]),
			p.emptiesNamespace(), p.changesNothingProtected(rule, false), p.allowed(rule.Allow), p.overridden(overlap.bySource(rule)))
		if rule.Message == "" {
			p.setMessageExpression(messageExpression(rule))
		}
	}
}

// guardNamespaces has p judge as guard does.
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

// protectClones has p judge as judgeMarks does, if it is to, and judgeClone.
func (p *policy) protectClones(rules []spec.Rule, marks bool) {
	operations := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	if marks {
		p.refuseUnless(decide.MarksMessage(spec.Update, "the object"), `request.operation == "DELETE"`,
			not(marksDiffer("labels")+" || "+marksDiffer("annotations")), p.overridden(""))
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
