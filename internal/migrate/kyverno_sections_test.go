package migrate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
)

// watching is a rule of the form of Kyverno's samples refresh-volumes-in-pods and
// refresh-env-var-in-pod.
func watching(kind, match, targets, patch string) string {
	return `apiVersion: kyverno.io/v2beta1
kind: ClusterPolicy
metadata: {name: p}
spec:
  mutateExistingOnPolicyUpdate: false
  rules:
  - name: r
    match: {any: [{resources: {kinds: [` + kind + `]` + match + `}}]}
    preconditions: {all: [{key: "{{ request.operation }}", operator: Equals, value: UPDATE}]}
    mutate:
      targets: [` + targets + `]
      patchStrategicMerge: ` + patch + `
`
}

const (
	watched      = ", selector: {matchLabels: {kyverno.io/watch: 'true'}}"
	ownPods      = "{apiVersion: v1, kind: Pod, namespace: '{{ request.namespace }}'}"
	ofVolumes    = "{metadata: {annotations: {corp.org/random: r}}, spec: {volumes: [{configMap: {<(name): '{{ request.object.metadata.name }}'}}]}}"
	ofEnvSecrets = "{spec: {template: {metadata: {annotations: {corp.org/random: r}}, spec: {containers: [{env: [{valueFrom: " +
		"{secretKeyRef: {<(name): '{{ request.object.metadata.name }}'}}}]}]}}}}"
)

func ownWorkloads(kinds ...string) string {
	var targets []string
	for _, kind := range kinds {
		targets = append(targets, "{apiVersion: apps/v1, kind: "+kind+", namespace: '{{request.namespace}}'}")
	}
	return strings.Join(targets, ", ")
}

func TestWhatWatchesObjectsOfEveryNamespaceBecomesASection(t *testing.T) {
	everywhere := rules.Namespaces{Include: []string{"*"}, Exclude: []string{"kube-*", "kyverno"}}
	label := &metav1.LabelSelector{MatchLabels: map[string]string{"kyverno.io/watch": "true"}}
	for sentence, test := range map[string]struct {
		policy string
		want   []reloadspec.NamespaceSection
	}{
		"mounted volumes": {
			watching("ConfigMap", watched, ownPods, ofVolumes),
			[]reloadspec.NamespaceSection{{
				Namespaces: everywhere, Action: reloadspec.Refresh,
				Objects: reloadspec.Objects{Kinds: []object.Kind{object.ConfigMap}, Include: []string{"*"}, Selector: label},
			}},
		},
		"environment variables": {
			watching("Secret", watched, ownWorkloads("Deployment", "StatefulSet", "DaemonSet"), ofEnvSecrets),
			[]reloadspec.NamespaceSection{{
				Namespaces: everywhere, Action: reloadspec.Auto,
				Objects: reloadspec.Objects{Kinds: []object.Kind{object.Secret}, Include: []string{"*"}, Selector: label},
			}},
		},
		"both of the same objects": {
			watching("Secret, ConfigMap", watched, ownPods, ofVolumes) + "---\n" +
				watching("ConfigMap, Secret", watched, ownWorkloads("Deployment", "StatefulSet", "DaemonSet"), ofEnvSecrets),
			[]reloadspec.NamespaceSection{{
				Namespaces: everywhere, Action: reloadspec.Auto,
				Objects: reloadspec.Objects{Kinds: object.Kinds, Include: []string{"*"}, Selector: label},
			}},
		},
		"both, where an object is about to be of both": {
			watching("Secret, ConfigMap", watched, ownPods, ofVolumes) + "---\n" +
				watching("Secret", watched, ownWorkloads("Deployment", "StatefulSet", "DaemonSet"), ofEnvSecrets),
			[]reloadspec.NamespaceSection{
				{Namespaces: everywhere, Action: reloadspec.Auto, Objects: reloadspec.Objects{Kinds: []object.Kind{object.Secret}, Include: []string{"*"}, Selector: label}},
				{Namespaces: everywhere, Action: reloadspec.Refresh, Objects: reloadspec.Objects{Kinds: object.Kinds, Include: []string{"*"}, Selector: label}},
			},
		},
		"names in some namespaces": {
			watching("ConfigMap", ", names: ['app-*'], namespaces: ['team-*', shop], namespaceSelector: {matchLabels: {a: b}}", ownPods, ofVolumes),
			[]reloadspec.NamespaceSection{{
				Namespaces: rules.Namespaces{
					Include: []string{"team-*", "shop"}, Exclude: []string{"kube-*"}, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
				},
				Action:  reloadspec.Refresh,
				Objects: reloadspec.Objects{Kinds: []object.Kind{object.ConfigMap}, Include: []string{"app-*"}},
			}},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			result, text, parsed := translatedFrom(t, strings.NewReader(test.policy))
			require.Equal(t, test.want, parsed.Reload.Namespaces, text)
			require.Empty(t, parsed.Rules)
			require.Empty(t, parsed.Notes, text)
			require.True(t, result.Carried(), text)
			require.Contains(t, result.Summary(), "partly: 0, not: 0\n")
			require.Contains(t, text, "Delete Kyverno's policies that restart")
		})
	}
}

func TestASectionThatReachesMoreIsAComment(t *testing.T) {
	for reason, policy := range map[string]string{
		"the policy restarts no StatefulSet": watching("Secret", watched, ownWorkloads("Deployment"), ofEnvSecrets),
		"selects pods by their labels": watching("ConfigMap", watched,
			"{apiVersion: v1, kind: Pod, namespace: '{{request.namespace}}', selector: {matchLabels: {a: b}}}", ofVolumes),
		"only under its preconditions": strings.Replace(watching("ConfigMap", watched, ownPods, ofVolumes), "request.operation", "request.userInfo", 1),
	} {
		t.Run(reason, func(t *testing.T) {
			result, text, parsed := translatedFrom(t, strings.NewReader(policy))
			require.Empty(t, parsed.Reload.Namespaces)
			require.Contains(t, strings.Join(strings.Fields(strings.ReplaceAll(text, "#", "")), " "), reason)
			require.False(t, result.Carried())
			require.Contains(t, result.Summary(), "not carried over: ClusterPolicy p, rule r: ")

			lines := strings.Split(text, "\n") // without the comment signs it is a section
			at := slices.Index(lines, "# reload:")
			require.GreaterOrEqual(t, at, 0, text)
			for i := at; i < len(lines); i++ {
				lines[i] = strings.TrimPrefix(lines[i], "# ")
			}
			var plain strings.Builder
			for _, line := range lines {
				plain.WriteString(line + "\n")
			}
			require.Len(t, parsedFrom(t, plain.String()).Reload.Namespaces, 1, plain.String())
		})
	}
}

func TestWhatNoSectionSaysIsToldWithAdvice(t *testing.T) {
	for _, policy := range []string{
		watching("ConfigMap", watched, "{apiVersion: v1, kind: Pod, namespace: elsewhere}", ofVolumes),
		watching("ConfigMap", ", annotations: {a: b}", ownPods, ofVolumes),
	} {
		result, _, _ := translatedFrom(t, strings.NewReader(policy))
		require.Len(t, result.Left, 1)
		require.Contains(t, result.Left[0].Why.String(), "write a section of reload.namespaces with action: Refresh")
	}
}

// As Kyverno's sample refresh-env-var-in-pod has its preconditions.
func TestPreconditionsOneLevelDeeperAreRead(t *testing.T) {
	policy := strings.Replace(watching("Secret", watched, ownWorkloads("Deployment", "StatefulSet", "DaemonSet"), ofEnvSecrets),
		"preconditions: {all:", "preconditions: {conditions: {all:", 1)
	policy = strings.Replace(policy, "value: UPDATE}]}", "value: UPDATE}]}}", 1)
	result, text, _ := translatedFrom(t, strings.NewReader(policy))
	require.True(t, result.Carried(), text)
}
