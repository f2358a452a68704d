package migrate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// restarting is a policy with a rule for each of these targets.
func restarting(namespaces string, targets ...string) string {
	var policy strings.Builder
	policy.WriteString("apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  rules:\n")
	for _, target := range targets {
		policy.WriteString(`  - name: r
    match: {any: [{resources: {kinds: [Secret], names: [base]` + namespaces + `}}]}
    preconditions: {all: [{key: "{{request.operation}}", operator: Equals, value: UPDATE}]}
    mutate:
      targets: [` + target + `]
      patchStrategicMerge: {spec: {template: {metadata: {annotations: {a: "{{request.object.metadata.resourceVersion}}"}}}}}
`)
	}
	return policy.String()
}

func target(kind string) string { return "{apiVersion: apps/v1, kind: " + kind + "}" }

func TestRulesThatRestartAKindEachRestartAllTogether(t *testing.T) {
	const spread = "\n---\napiVersion: v1\nkind: Secret\nmetadata: {namespace: platform, name: base, " +
		"annotations: {replicator.v1.mittwald.de/replicate-to: team-a}}\n"
	for sentence, policy := range map[string]string{
		"of one namespace":   restarting(", namespaces: [platform]", target("Deployment"), target("StatefulSet"), target("DaemonSet")),
		"of every namespace": restarting("", target("Deployment"), target("StatefulSet"), target("DaemonSet")) + spread,
	} {
		t.Run(sentence, func(t *testing.T) {
			result, text, parsed := translatedFrom(t, strings.NewReader(policy))
			require.True(t, result.Carried(), text)
			require.Len(t, parsed.Rules, 1)
			require.NotNil(t, parsed.Rules[0].Reload)
		})
	}
}

// Without the comment signs, it is a rule that restarts.
func TestARestartThatIsACommentIsThereAsAWhole(t *testing.T) {
	conditional := strings.TrimSuffix(target("Deployment"), "}") + ", preconditions: {all: [{key: a, operator: Equals, value: b}]}}"
	_, text, _ := translatedFrom(t, strings.NewReader(restarting(", namespaces: [platform]", conditional)))
	require.Contains(t, text, "#   reload:\n#     action: Restart\n")
}
