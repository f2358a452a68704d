package migrate_test

import (
	"cmp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	protectspec "github.com/headwater-k8s/headwater/protect/spec"
)

// What a deny asks beside the operation would be lost, and more be refused.
func TestADenyIsCarriedOverOnlyIfARuleSaysTheSame(t *testing.T) {
	for sentence, test := range map[string]struct {
		conditions    string
		preconditions string
		match         string
		exclude       string
		off           string // empty: in force
		operations    []protectspec.Operation
	}{
		"no conditions":      {operations: []protectspec.Operation{protectspec.Create, protectspec.Update}},
		"a list of old form": {conditions: `[{key: "{{ request.operation }}", operator: Equals, value: DELETE}]`, operations: []protectspec.Operation{protectspec.Delete}},
		"updates and deletions, but not that it is made": {
			conditions: `[{key: "{{ request.operation }}", operator: In, value: [UPDATE, DELETE]}]`, operations: []protectspec.Operation{protectspec.Update, protectspec.Delete},
		},
		"all of them": {
			conditions: `[{key: "{{ request.operation }}", operator: In, value: [CREATE, UPDATE, DELETE]}]`, operations: protectspec.Operations(),
		},
		"a default operation": {
			conditions: `{any: [{key: "{{request.operation || 'BACKGROUND'}}", operator: AnyIn, value: [UPDATE]}]}`,
			operations: []protectspec.Operation{protectspec.Update},
		},
		"it asks for a label": {
			conditions: `{all: [{key: "{{request.object.metadata.labels.locked}}", operator: Equals, value: "yes"}]}`, off: "ask more than which operation",
		},
		"two conditions": {
			conditions: `{all: [{key: "{{request.operation}}", operator: Equals, value: DELETE}, {key: a, operator: Equals, value: a}]}`, off: "ask more than which operation",
		},
		"an operator that negates": {
			conditions: `[{key: "{{request.operation}}", operator: NotEquals, value: DELETE}]`, operations: []protectspec.Operation{protectspec.Create, protectspec.Update},
		},
		"an operator that compares": {conditions: `[{key: "{{request.operation}}", operator: GreaterThan, value: DELETE}]`, off: "ask more than which operation"},
		"preconditions ask which operation it is": {
			preconditions: `{all: [{key: "{{ request.operation || 'BACKGROUND' }}", operator: Equals, value: DELETE}]}`,
			operations:    []protectspec.Operation{protectspec.Delete},
		},
		"preconditions ask for another operation": {
			preconditions: `{all: [{key: "{{request.operation}}", operator: Equals, value: UPDATE}]}`,
			conditions:    `[{key: "{{request.operation}}", operator: Equals, value: DELETE}]`, off: "nor updates nor deletions",
		},
		"preconditions ask for more": {
			preconditions: `{all: [{key: "{{request.userInfo.username}}", operator: Equals, value: bob}]}`, off: "only under its preconditions",
		},
		"only for some people":  {match: "subjects: [{kind: User, name: bob}], ", off: "refuses only certain users"},
		"but for some objects":  {exclude: "exclude: {any: [{resources: {names: [base]}}]}", off: "it excludes objects"},
		"but for other objects": {exclude: "exclude: {any: [{resources: {names: [another]}}]}", operations: []protectspec.Operation{protectspec.Create, protectspec.Update}},
	} {
		t.Run(sentence, func(t *testing.T) {
			deny := "{}"
			if test.conditions != "" {
				deny = "{conditions: " + test.conditions + "}"
			}
			result, text, parsed := translatedFrom(t, strings.NewReader(oneRulePolicy+`    match: {any: [{`+test.match+`resources: {kinds: [Secret], names: [base], namespaces: [platform]}}]}
    `+test.exclude+`
    preconditions: `+cmp.Or(test.preconditions, "{}")+`
    validate: {failureAction: Enforce, deny: `+deny+`}
`))
			if test.off == "" {
				require.Len(t, parsed.Rules, 1, text)
				require.Equal(t, test.operations, parsed.Rules[0].Protect.Operations)
				require.Equal(t, len(test.operations) < len(protectspec.Operations()), strings.Contains(text, "operations: ["), text)
				return
			}
			require.Empty(t, parsed.Rules)
			require.Contains(t, result.Rules[0].Off.String(), test.off)
		})
	}
}

// A file in which one source has two protect sections is none that Headwater reads.
func TestPoliciesAboutOneSourceBecomeOneRule(t *testing.T) {
	rule := func(name, operations, exclude string) string {
		return `
  - name: ` + name + `
    match: {any: [{resources: {kinds: [Secret], names: [base], namespaces: [platform], operations: [` + operations + `]}}]}
    exclude: {any: [` + exclude + `]}
    validate: {failureAction: Enforce, deny: {}}`
	}
	header := "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  rules:"
	result, _, parsed := translatedFrom(t, strings.NewReader(header+rule("a", "DELETE", "")+rule("b", "UPDATE", "")))
	require.True(t, result.Carried())
	require.Len(t, parsed.Rules, 1)
	require.Equal(t, []protectspec.Operation{protectspec.Update, protectspec.Delete}, parsed.Rules[0].Protect.Operations)

	result, _, parsed = translatedFrom(t, strings.NewReader(header+rule("a", "DELETE", "")+rule("b", "UPDATE", "{clusterRoles: [editor]}")))
	require.Len(t, parsed.Rules, 1)
	require.Equal(t, []protectspec.Operation{protectspec.Delete}, parsed.Rules[0].Protect.Operations)
	require.Contains(t, result.Rules[1].Off.String(), "p, rule a protects Secret/platform/base already")
}

func TestAPolicyAboutEveryNamespaceProtectsOneSourceOnce(t *testing.T) {
	_, _, parsed := translatedFrom(t, strings.NewReader(`
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: spread
    match: {any: [{resources: {kinds: [Namespace], names: [a]}}, {resources: {kinds: [Namespace], selector: {matchLabels: {b: c}}}}]}
    generate:
      {apiVersion: v1, kind: Secret, name: base, namespace: "{{request.object.metadata.name}}", synchronize: true, clone: {namespace: platform, name: base}}
  - name: guard
    match: {any: [{resources: {kinds: [Secret], names: [base]}}]}
    validate: {failureAction: Enforce, deny: {}}
`))
	require.Len(t, parsed.Rules, 2)
	require.NotNil(t, parsed.Rules[0].Protect)
	require.Nil(t, parsed.Rules[1].Protect)
}
