package migrate_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/migrate"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// clonesOf are the namespaces that each source is cloned into, and the name of the
// clones if it is another.
func clonesOf(t *testing.T, policies string) (migrate.Result, map[string][]string) {
	t.Helper()
	result, text, parsed := translatedFrom(t, strings.NewReader(policies))
	got := map[string][]string{}
	for _, rule := range parsed.Rules {
		key := rule.Source.String()
		if rule.Sync.Target.Name != "" {
			key += " as " + rule.Sync.Target.Name
		}
		require.NotContains(t, got, key, "one rule for a source: %s", text)
		got[key] = selected(t, rule)
	}
	require.Empty(t, parsed.Notes, text)
	return result, got
}

// literal is a rule that clones into one namespace.
func literal(name, match, namespace string) string {
	return "\n  - name: " + name + "\n    match: {any: [{resources: {" + match + "}}]}\n" +
		`    generate: {apiVersion: v1, kind: Secret, name: base, namespace: "` + namespace + `", synchronize: true, clone: {namespace: platform, name: base}}`
}

const clonePolicies = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  generateExisting: true\n  rules:"

func TestLiteralTargetsOfOneSourceAreOneRule(t *testing.T) {
	const source = "Secret/platform/base"
	for sentence, test := range map[string]struct {
		rules string
		want  map[string][]string
	}{
		"the namespace that triggers": {
			literal("a", "kinds: [Namespace], names: [shop]", "shop"), map[string][]string{source: {"shop"}},
		},
		"a rule for each namespace": {
			literal("a", "kinds: [Namespace], names: [shop]", "shop") + literal("b", "kinds: [Namespace], names: [team-a]", "{{request.name}}") +
				literal("c", "kinds: [Namespace], names: [team-b]", "{{ request.object.metadata.name }}"),
			map[string][]string{source: {"shop", "team-a", "team-b"}},
		},
		"once the source is created or changed": {
			literal("a", "kinds: [Secret], names: [base], namespaces: [platform]", "shop") +
				literal("b", "kinds: [v1/Secret], names: [base]", "team-a"),
			map[string][]string{source: {"shop", "team-a"}},
		},
		"some of all namespaces": {
			literal("a", "kinds: [Namespace]", "shop"), map[string][]string{source: {"shop"}},
		},
		"what one excludes and the other does not select": {
			literal("a", "kinds: [Namespace], names: ['team-*']}}], all: []}\n    exclude: {any: [{resources: {names: [team-legacy]", "{{request.name}}") +
				literal("b", "kinds: [Namespace], names: [shop]", "shop"),
			map[string][]string{source: {"shop", "team-a", "team-b", "team-c", "team-old-1", "team-x"}},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			result, got := clonesOf(t, clonePolicies+test.rules+"\n")
			require.Equal(t, test.want, got)
			require.True(t, result.Carried(), result.Summary())
		})
	}
}

// In force, it would reach a namespace that Kyverno may never clone into.
func TestALiteralTargetThatSomethingElseTriggersIsACommentThatIsReadyToUse(t *testing.T) {
	for sentence, match := range map[string]string{
		"another namespace":           "kinds: [Namespace], names: [team-a]",
		"a namespace by its labels":   "kinds: [Namespace], selector: {matchLabels: {a: b}}",
		"a Pod":                       "kinds: [Pod]",
		"a Secret of the same name":   "kinds: [Secret], names: [base], namespaces: [elsewhere]",
		"the source, if it is so":     "kinds: [Secret], names: [base], namespaces: [platform], selector: {matchLabels: {a: b}}",
		"another object of its place": "kinds: [Secret], names: [another], namespaces: [platform]",
	} {
		t.Run(sentence, func(t *testing.T) {
			result, text, parsed := translatedFrom(t, strings.NewReader(clonePolicies+literal("a", match, "shop")+"\n"))
			require.Empty(t, parsed.Rules)
			require.Contains(t, text, "#       include: [shop]\n")
			require.Contains(t, result.Summary(), "carried over: 0, partly: 0, not: 1\nnot carried over: ClusterPolicy p, rule a: it clones into namespace shop once something else")
		})
	}
}

func TestCELPoliciesCloneByLiteralsAndTemplates(t *testing.T) {
	_, got := clonesOf(t, strings.Replace(celCloning, "object.metadata.name", `"team-a"`, 1))
	require.Equal(t, map[string][]string{"Secret/platform/base": {"team-a"}}, got)

	result, got := clonesOf(t, templateCloning)
	require.Equal(t, map[string][]string{"Secret/platform/base as other": {"team-a"}}, got)
	require.True(t, result.Carried(), result.Summary())

	_, document, _ := strings.Cut(templateCloning, "        apiVersion")
	document = "        apiVersion" + document
	result, got = clonesOf(t, templateCloning+"        ---\n"+strings.NewReplacer("name: other", "name: base", "(( object.metadata.name ))", "team-a").Replace(document)+
		"        ---\n        apiVersion: v1\n        kind: ServiceAccount\n        metadata: {name: robot, namespace: (( object.metadata.name ))}\n")
	require.Equal(t, []string{"Secret/platform/base", "Secret/platform/base as other"}, slices.Sorted(maps.Keys(got)))
	require.Contains(t, result.Summary(), "partly carried over: GeneratingPolicy p: it clones ServiceAccount as well")

	for sentence, change := range map[string][2]string{
		"a value of the policy":        {"(( variables.source.data ))", "{a: YQ==}"},
		"an expression that is not":    {"interpolate: cel", "interpolate: none"},
		"more than the source's data":  {"(( variables.source.data ))", "(( variables.source.data ))\n        stringData: {a: b}"},
		"other data, in its own place": {"(( variables.source.data ))", "(( variables.source.data ))\n        binaryData: {a: YQ==}"},
	} {
		result, got := clonesOf(t, strings.Replace(templateCloning, change[0], change[1], 1))
		require.Empty(t, got, sentence)
		require.Contains(t, result.Summary(), "it makes objects from data in the policy", sentence)
	}
}

// A folder of policies has many that are not Headwater's.
func TestWhatDoesAnotherJobIsCountedAndNotMissed(t *testing.T) {
	other := strings.NewReplacer("name: p}", "name: q}", "kind: Secret", "kind: Role", "[Secret]", "[Pod]")
	result, text, _ := translatedFrom(t, strings.NewReader(strings.Join([]string{
		cloningPolicy, other.Replace(cloningPolicy), other.Replace(denyingPolicy), other.Replace(restartingPolicy),
		"apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: q}\nspec: {rules: [{name: r, validate: {pattern: {a: b}}}]}\n",
		strings.ReplaceAll(policyException, "policyName: p", "policyName: q"),
	}, "---\n")))
	require.True(t, result.Carried(), result.Summary())
	require.Equal(t, "carried over: 1, partly: 0, not: 0\nrules that do other jobs, and stay with Kyverno: 4\n", result.Summary())
	require.Contains(t, text, "\n# Do other jobs, and stay with Kyverno:\n# - ClusterPolicy q, rule r\n")
}

func TestTheSummaryCountsWhatToolsWereTold(t *testing.T) {
	result, text, _ := translated(t, "kyverno-clone.yaml")
	require.Equal(t, "carried over: 2, partly: 1, not: 0", strings.Split(result.Summary(), "\n")[0])
	require.Contains(t, text, "# Made by headwater migrate: carried over: 2, partly: 1, not: 0.\n")
	require.Contains(t, result.Summary(), "partly carried over: ClusterPolicy guard-pull-secret, rule only-platform: Role platform:secret-editor exempts nobody here")
}

// GitOps repositories hold what makes a Secret, not the Secret.
func TestAnnotationsThatASecretWillHaveCount(t *testing.T) {
	const annotations = `{replicator.v1.mittwald.de/replicate-to: team-a}`
	for sentence, file := range map[string]string{
		"of a Certificate":     "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {namespace: platform, name: c}\nspec: {secretName: base, secretTemplate: {annotations: " + annotations + "}}",
		"of an ExternalSecret": "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {namespace: platform, name: c}\nspec: {target: {name: base, template: {metadata: {annotations: " + annotations + "}, data: {a: '{{ .a }}'}}}}",
		"named as its maker":   "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {namespace: platform, name: base}\nspec: {target: {template: {metadata: {annotations: " + annotations + "}}}}",
		"of a SealedSecret":    "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {namespace: platform, name: base}\nspec: {template: {metadata: {annotations: " + annotations + "}}}",
	} {
		t.Run(sentence, func(t *testing.T) {
			result, _, parsed := translatedFrom(t, strings.NewReader(file))
			require.True(t, result.Carried(), result.Summary())
			require.Len(t, parsed.Rules, 1)
			require.Equal(t, rules.Source{Kind: "Secret", Namespace: "platform", Name: "base"}, parsed.Rules[0].Source)
			require.Equal(t, []string{"team-a"}, selected(t, parsed.Rules[0]))
		})
	}
}
