package migrate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/protect"
)

// What a deny asks beside the operation would be lost, and more be refused.
func TestADenyIsCarriedOverOnlyIfARuleSaysTheSame(t *testing.T) {
	for sentence, test := range map[string]struct {
		conditions string
		match      string
		exclude    string
		off        string // empty: in force
		operations []protect.Operation
	}{
		"no conditions":      {operations: []protect.Operation{protect.Update}},
		"a list of old form": {conditions: `[{key: "{{ request.operation }}", operator: Equals, value: DELETE}]`, operations: []protect.Operation{protect.Delete}},
		"a default operation": {
			conditions: `{any: [{key: "{{request.operation || 'BACKGROUND'}}", operator: AnyIn, value: [UPDATE]}]}`,
			operations: []protect.Operation{protect.Update},
		},
		"it asks for a label": {
			conditions: `{all: [{key: "{{request.object.metadata.labels.locked}}", operator: Equals, value: "yes"}]}`, off: "ask more than which operation",
		},
		"two conditions": {
			conditions: `{all: [{key: "{{request.operation}}", operator: Equals, value: DELETE}, {key: a, operator: Equals, value: a}]}`, off: "of a form that has no counterpart",
		},
		"an operator that negates": {conditions: `[{key: "{{request.operation}}", operator: NotEquals, value: DELETE}]`, off: "the operator NotEquals"},
		"only for some people":     {match: "subjects: [{kind: User, name: bob}], ", off: "refuses only certain people"},
		"but for some objects":     {exclude: "exclude: {any: [{resources: {names: [base]}}]}", off: "it excludes objects"},
		"but for other objects":    {exclude: "exclude: {any: [{resources: {names: [another]}}]}", operations: []protect.Operation{protect.Update}},
	} {
		t.Run(sentence, func(t *testing.T) {
			deny := "{}"
			if test.conditions != "" {
				deny = "{conditions: " + test.conditions + "}"
			}
			result, text, parsed := translatedFrom(t, strings.NewReader(`
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{`+test.match+`resources: {kinds: [Secret], names: [base], namespaces: [platform]}}]}
    `+test.exclude+`
    validate: {failureAction: Enforce, deny: `+deny+`}
`))
			if test.off == "" {
				require.Len(t, parsed.Rules, 1, text)
				require.Equal(t, test.operations, parsed.Rules[0].Protect.Operations)
				return
			}
			require.Empty(t, parsed.Rules)
			require.Contains(t, result.Rules[0].Off, test.off)
		})
	}
}
