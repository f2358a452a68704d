package cel

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	celplugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/kubernetes/scheme"

	protectdecide "github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/manifests"
)

// oldest is the CEL of the oldest Kubernetes that Headwater takes: what it
// accepts to be written, every later one does.
var oldest = environment.MustBaseEnvSet(version.MajorMinor(1, 30))

var namespaceResource = corev1.SchemeGroupVersion.WithResource("namespaces")

// What an expression may refer to.
var (
	withAuthorizer    = celplugin.OptionalVariableDeclarations{HasAuthorizer: true}
	withoutAuthorizer = celplugin.OptionalVariableDeclarations{}
)

// policy is a ValidatingAdmissionPolicy as the API server holds it.
type policy struct {
	manifests.Policy

	evaluator validating.Validator
}

// compilePolicy compiles every expression of the policy as the API server does
// when the policy is written, and fails t for those that do not.
func compilePolicy(t testing.TB, p manifests.Policy) policy {
	t.Helper()
	definition := p.Definition
	compiler, err := celplugin.NewCompositedCompiler(oldest)
	require.NoError(t, err)
	for _, v := range definition.Spec.Variables {
		named := &validating.Variable{Name: v.Name, Expression: v.Expression}
		compiled := compiler.CompileAndStoreVariable(named, withAuthorizer, environment.NewExpressions)
		require.Nil(t, compiled.Error, "%s, variable %s: %s", definition.Name, v.Name, v.Expression)
	}
	compile := func(expressions []celplugin.ExpressionAccessor, options celplugin.OptionalVariableDeclarations) celplugin.ConditionEvaluator {
		condition := compiler.CompileCondition(expressions, options, environment.NewExpressions)
		require.Empty(t, condition.CompilationErrors(), definition.Name)
		return condition
	}
	validations, messages := validationsOf(definition)
	matcher := matchconditions.NewMatcher(compile(conditions(definition.Spec.MatchConditions), withAuthorizer),
		definition.Spec.FailurePolicy, "policy", "validate", definition.Name)
	evaluator := validating.NewValidator(compile(validations, withAuthorizer), matcher,
		compile(nil, withAuthorizer), compile(messages, withoutAuthorizer), definition.Spec.FailurePolicy, nil)
	return policy{p, evaluator}
}

// validationsOf returns what the policy demands, and at the same index what it
// says when that is not so; nil where it is no expression.
func validationsOf(definition *admissionregistrationv1.ValidatingAdmissionPolicy) (validations, messages []celplugin.ExpressionAccessor) {
	for _, v := range definition.Spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		if v.MessageExpression == "" {
			messages = append(messages, nil)
			continue
		}
		messages = append(messages, &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
	}
	return validations, messages
}

func conditions(all []admissionregistrationv1.MatchCondition) []celplugin.ExpressionAccessor {
	var accessors []celplugin.ExpressionAccessor
	for _, condition := range all {
		accessors = append(accessors, (*matchconditions.MatchCondition)(&condition))
	}
	return accessors
}

// webhook is one of a ValidatingWebhookConfiguration as the API server holds
// it.
type webhook struct {
	definition admissionregistrationv1.ValidatingWebhook
	matcher    matchconditions.Matcher
}

func compileWebhook(t testing.TB, definition admissionregistrationv1.ValidatingWebhook) webhook {
	t.Helper()
	condition := celplugin.NewConditionCompiler(oldest).CompileCondition(conditions(definition.MatchConditions), withAuthorizer, environment.NewExpressions)
	require.Empty(t, condition.CompilationErrors(), definition.Name)
	return webhook{definition, matchconditions.NewMatcher(condition, definition.FailurePolicy, "webhook", "validating", definition.Name)}
}

// overrides are the rules for which the requester holds the override
// permission; every is for all of them, as RBAC gives it without resource names.
type overrides []string

const every = ""

func (o overrides) Authorize(_ context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
	about := asked.GetVerb() == "override" && asked.GetAPIGroup() == "headwater.dev" && asked.GetResource() == "protectedobjects"
	if about && (slices.Contains(o, every) || slices.Contains(o, asked.GetName())) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// scope is about which requests there is a question at all.
type scope struct {
	rules              []admissionregistrationv1.RuleWithOperations
	namespaces, labels *metav1.LabelSelector
}

// matches decides as the API server does, to which namespaces are known by name
// alone.
func (s scope) matches(t testing.TB, attributes admission.Attributes) bool {
	t.Helper()
	ruled := slices.ContainsFunc(s.rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
		matcher := rules.Matcher{Rule: rule, Attr: attributes}
		return matcher.Matches()
	})
	inNamespace := attributes.GetResource() == namespaceResource ||
		selects(t, s.namespaces, map[string]string{corev1.LabelMetadataName: attributes.GetNamespace()})
	labelled := func(of runtime.Object) bool {
		meta, ok := of.(metav1.Object)
		return ok && selects(t, s.labels, meta.GetLabels())
	}
	return ruled && inNamespace && (labelled(attributes.GetObject()) || labelled(attributes.GetOldObject()))
}

func selects(t testing.TB, selector *metav1.LabelSelector, set map[string]string) bool {
	t.Helper()
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	require.NoError(t, err)
	return compiled.Matches(labels.Set(set))
}

// outcome is what becomes of what the policy refuses.
func (p policy) outcome() protectdecide.Outcome {
	return map[admissionregistrationv1.ValidationAction]protectdecide.Outcome{
		admissionregistrationv1.Deny: protectdecide.OutcomeDenied, admissionregistrationv1.Warn: protectdecide.OutcomeWarned, admissionregistrationv1.Audit: protectdecide.OutcomeAudited,
	}[p.Binding.Spec.ValidationActions[0]]
}

// judge returns why the policy refuses the request, and what it failed to
// evaluate.
func (p policy) judge(t testing.TB, attributes admission.Attributes, namespace *corev1.Namespace, held overrides) (refusals, failures []string) {
	t.Helper()
	constraints := p.Definition.Spec.MatchConstraints
	var operations []admissionregistrationv1.RuleWithOperations
	for _, rule := range constraints.ResourceRules {
		operations = append(operations, rule.RuleWithOperations)
	}
	within := scope{operations, constraints.NamespaceSelector, constraints.ObjectSelector}
	if !within.matches(t, attributes) {
		return nil, nil
	}
	result := p.evaluator.Validate(t.Context(), attributes.GetResource(), versioned(t, attributes), nil, namespace, celconfig.RuntimeCELCostBudget, held)
	for _, decision := range result.Decisions {
		switch {
		case decision.Evaluation == validating.EvalError:
			failures = append(failures, p.Definition.Name+": "+decision.Message)
		case decision.Action == validating.ActionDeny:
			refusals = append(refusals, p.Definition.Name+": "+decision.Message)
		}
	}
	return refusals, failures
}

// question is what the webhook asks.
func (w webhook) question() protectdecide.Scope {
	return protectdecide.ScopeAt(*w.definition.ClientConfig.Service.Path)
}

// asked reports whether the API server asks the webhook about the request.
func (w webhook) asked(t testing.TB, attributes admission.Attributes, held overrides) bool {
	t.Helper()
	within := scope{w.definition.Rules, w.definition.NamespaceSelector, w.definition.ObjectSelector}
	if !within.matches(t, attributes) {
		return false
	}
	result := w.matcher.Match(t.Context(), versioned(t, attributes), nil, held)
	require.NoError(t, result.Error, w.definition.Name)
	return result.Matches
}

func versioned(t testing.TB, attributes admission.Attributes) *admission.VersionedAttributes {
	t.Helper()
	v, err := admission.NewVersionedAttributes(attributes, attributes.GetKind(), admission.NewObjectInterfacesFromScheme(scheme.Scheme))
	require.NoError(t, err)
	return v
}
