package migrate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	protectspec "github.com/headwater-k8s/headwater/protect/spec"
)

// What is not understood must exempt nobody.
func TestWhoACELPolicyLetsPassIsRecognisedSurelyOrNotAtAll(t *testing.T) {
	none := protectspec.Allow{ClusterRoles: []string{}}
	users := func(names ...string) protectspec.Allow {
		return protectspec.Allow{ClusterRoles: []string{}, Users: names}
	}
	for sentence, test := range map[string]struct {
		condition, validation string
		want                  *protectspec.Allow // nil: the rule is a comment
	}{
		"nobody":                           {validation: "false", want: &none},
		"a user":                           {validation: "(request.userInfo.username == 'a')", want: new(users("a"))},
		"one of two":                       {validation: "request.userInfo.username=='a'||(request.userInfo.username in ['b'])", want: new(users("a", "b"))},
		"users that it does not ask about": {condition: "!(request.userInfo.username in ['a', 'b'])", validation: "false", want: new(users("a", "b"))},
		"a group":                          {condition: "!('g' in request.userInfo.groups)", validation: "false", want: &protectspec.Allow{ClusterRoles: []string{}, Groups: []string{"g"}}},
		"a user for some objects":          {validation: "request.userInfo.username == 'a' && object.metadata.name == 'b'"},
		"a user, or an object":             {validation: "request.userInfo.username == 'a' || object.metadata.name == 'b'"},
		"everybody":                        {validation: "true"},
		"a user, unless":                   {validation: "request.userInfo.username != 'a'"},
		"only a user is asked about":       {condition: "request.userInfo.username == 'a'", validation: "false"},
		"a negation of half of it":         {condition: "!(request.userInfo.username == 'a') || 'g' in request.userInfo.groups", validation: "false"},
		"a negation without parentheses":   {condition: "!'g' in request.userInfo.groups", validation: "false"},
		"a negation of two that both are":  {condition: "!('g' in request.userInfo.groups && 'h' in request.userInfo.groups)", validation: "false"},
		"a group of another list":          {validation: "'g' in request.userInfo.groups.map(x, x + 'y')"},
	} {
		t.Run(sentence, func(t *testing.T) {
			condition := ""
			if test.condition != "" {
				condition = "matchConditions: [{name: c, expression: \"" + test.condition + "\"}]"
			}
			result, text, parsed := translatedFrom(t, strings.NewReader(`
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: p}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [secrets], resourceNames: [base]}]
    namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [platform]}]}
  `+condition+`
  validations: [{expression: "`+test.validation+`"}]
`))
			if test.want == nil {
				require.Empty(t, parsed.Rules, text)
				require.Contains(t, result.Rules[0].Off.String(), "asks more in CEL")
				return
			}
			require.Len(t, parsed.Rules, 1, text)
			require.Equal(t, *test.want, parsed.Rules[0].Protect.Allow)
		})
	}
}
