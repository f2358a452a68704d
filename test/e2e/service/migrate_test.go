package service

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

// policies serves Kyverno's kinds of policy, without Kyverno, and creates these.
func (e *env) policies(documents ...string) {
	e.Helper()
	for group, kind := range map[string]string{"kyverno.io": "ClusterPolicy", "policies.kyverno.io": "GeneratingPolicy"} {
		plural := kyvernoResource(kind)
		definition := e.Manifest(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s}
spec:
  group: %[2]s
  scope: Cluster
  names: {kind: %[3]s, plural: %[1]s}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: &any {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: *any}}
`, plural, group, kind))
		_, err := e.Dynamic().Resource(lab.Definitions()).Create(e.Context(), definition, metav1.CreateOptions{})
		require.NoError(e, err)
		e.Cleanup(func() {
			_ = e.Dynamic().Resource(lab.Definitions()).Delete(context.WithoutCancel(e.Context()), definition.GetName(), metav1.DeleteOptions{})
		})
	}
	for _, document := range documents {
		policy := e.Manifest(document)
		served := policy.GroupVersionKind().GroupVersion().WithResource(kyvernoResource(policy.GetKind()))
		e.Eventually(func(ctx context.Context) error {
			_, err := e.Dynamic().Resource(served).Create(ctx, policy, metav1.CreateOptions{})
			return err
		})
	}
}

func kyvernoResource(kind string) string {
	return strings.ToLower(strings.TrimSuffix(kind, "y")) + "ies"
}

// marked creates a Secret with data and somebody's labels and annotations.
func (e *env) marked(namespace, name string, data, labels, annotations map[string]string) types.UID {
	e.Helper()
	secret := lab.Secret(namespace, name, data)
	secret.Labels, secret.Annotations = labels, annotations
	created, err := e.Admin.CoreV1().Secrets(namespace).Create(e.Context(), secret, metav1.CreateOptions{})
	require.NoError(e, err)
	return created.UID
}

const migratedPolicies = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: spread-and-restart}
spec:
  generateExisting: true
  rules:
  - name: spread
    match: {any: [{resources: {kinds: [Namespace], names: [mig-a]}}]}
    generate:
      apiVersion: v1
      kind: Secret
      name: cloned
      namespace: "{{request.object.metadata.name}}"
      synchronize: true
      clone: {namespace: mig-src, name: cloned}
  - name: guard
    match: {any: [{resources: {kinds: [Secret], names: [cloned], namespaces: [mig-src], operations: [UPDATE, DELETE]}}]}
    exclude: {any: [{clusterRoles: [cluster-admin]}]}
    validate: {failureAction: Enforce, deny: {}}
  - name: restart
    match: {any: [{resources: {kinds: [Secret], names: [cloned]}}]}
    mutate:
      targets:
      - {apiVersion: apps/v1, kind: Deployment, namespace: "{{request.namespace}}"}
      - {apiVersion: apps/v1, kind: StatefulSet, namespace: "{{request.namespace}}"}
      - {apiVersion: apps/v1, kind: DaemonSet, namespace: "{{request.namespace}}"}
      patchStrategicMerge: {spec: {template: {metadata: {annotations: {example.com/rolled: "{{request.object.metadata.resourceVersion}}"}}}}}
`

const migratedGeneratingPolicy = `
apiVersion: policies.kyverno.io/v1beta1
kind: GeneratingPolicy
metadata: {name: spread-by-cel}
spec:
  evaluation: {generateExisting: {enabled: true}, synchronize: {enabled: true}, orphanDownstreamOnPolicyDelete: {enabled: true}}
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [namespaces], resourceNames: [mig-d]}
  generate:
  - {expression: 'generator.Apply(object.metadata.name, [resource.Get("v1", "secrets", "mig-src", "generated")])'}
`

// migrationStage is a cluster as Kyverno, Reflector and the replicator leave it:
// the UIDs of their clones, by namespace and name.
func (e *env) migrationStage() map[[2]string]types.UID {
	e.Helper()
	e.Namespaces("mig-src", "mig-a", "mig-b", "mig-c", "mig-d")
	data := map[string]string{"token": "1"}
	e.marked("mig-src", "cloned", data, map[string]string{"team": "platform", "generate.kyverno.io/clone-source": ""}, nil)
	e.marked("mig-src", "generated", data, map[string]string{"team": "platform"}, nil)
	reflector, replicator := "reflector.v1.k8s.emberstack.com/", "replicator.v1.mittwald.de/"
	e.marked("mig-src", "mirrored", data, nil, map[string]string{
		reflector + "reflection-allowed": "true", reflector + "reflection-auto-enabled": "true", reflector + "reflection-auto-namespaces": "mig-b",
	})
	e.marked("mig-src", "replicated", data, map[string]string{"team": "platform"}, map[string]string{replicator + "replicate-to": "mig-c"})
	e.policies(migratedPolicies, migratedGeneratingPolicy)
	return map[[2]string]types.UID{
		{"mig-a", "cloned"}: e.marked("mig-a", "cloned", data, map[string]string{
			"team": "platform", "generate.kyverno.io/clone-source": "", "app.kubernetes.io/managed-by": "kyverno",
			"generate.kyverno.io/policy-name": "spread-and-restart", "generate.kyverno.io/rule-name": "spread",
		}, nil),
		{"mig-d", "generated"}: e.marked("mig-d", "generated", data, map[string]string{
			"team": "platform", "app.kubernetes.io/managed-by": "kyverno",
			"generate.kyverno.io/policy-name": "spread-by-cel", "generate.kyverno.io/source-uid": "of-another-life",
		}, nil),
		{"mig-b", "mirrored"}: e.marked("mig-b", "mirrored", data, nil, map[string]string{
			reflector + "auto-reflects": "True", reflector + "reflects": "mig-src/mirrored", reflector + "reflected-version": "7",
		}),
		{"mig-c", "replicated"}: e.marked("mig-c", "replicated", data, map[string]string{"team": "platform"}, map[string]string{
			replicator + "replicated-from-version": "7", replicator + "replicated-keys": "token",
		}),
	}
}

// migrated is the file that headwater migrate makes of the cluster, as a user
// who may read no value of a Secret's.
func (e *env) migrated() string {
	e.Helper()
	e.Create("", &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "migrator"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: []string{"list"}},
			{APIGroups: []string{"kyverno.io"}, Resources: []string{"clusterpolicies"}, Verbs: []string{"list"}},
			{APIGroups: []string{"policies.kyverno.io"}, Resources: []string{"generatingpolicies"}, Verbs: []string{"list"}},
		},
	})
	require.NoError(e, lab.Bind(e.Context(), e.Admin, "migrator", "migrator"))
	out, summary, exit := e.Command("migrator", "migrate")
	require.Zero(e, exit, summary)
	require.Contains(e, summary, "carried over: 6, partly: 0, not: 0")
	file := filepath.Join(e.Dir, "migrated.yaml")
	require.NoError(e, os.WriteFile(file, []byte(out), 0o600))
	_, problems, exit := e.Command("migrator", "plan", "--config", file)
	require.Equal(e, 1, exit, "plan needs to read more: %s", problems)
	return file
}

func TestClonesOfOtherToolsAreAdoptedInPlace(t *testing.T) {
	e := newEnv(t)
	clones := e.migrationStage()
	stamps := map[string]map[string]string{}
	for place := range clones {
		wish := map[string]string{mark.Reload: "Restart"}
		if place[1] == "cloned" { // whose rule says so
			wish = nil
		}
		e.Deployment(place[0], "by-env", lab.ByEnv(place[1], "token"), wish)
		stamps[place[0]] = e.Stamps(place[0])
	}
	file := e.migrated()

	o := e.Options("")
	o.Config = file
	before := e.Cluster.Mark()
	h := e.Launch(o)
	require.NoError(t, h.Ready(t.Context()))
	e.Eventually(func(context.Context) error {
		for place := range clones {
			if marks, ours := mark.Of(e.Get(place[0], place[1])); !ours || marks.Rule != place[1] {
				return fmt.Errorf("%v is not adopted yet", place)
			}
		}
		return nil
	})
	e.Settled(h)
	for place, uid := range clones {
		clone := e.Get(place[0], place[1])
		require.Equal(t, uid, clone.UID)
		require.NoError(t, lab.SameData(clone, map[string]string{"token": "1"}))
	}
	require.Equal(t, "kyverno", e.Get("mig-a", "cloned").Labels["app.kubernetes.io/managed-by"], "labels of others stay")
	marking, once := map[[2]string]int{}, map[[2]string]int{}
	for _, write := range e.Writes(before) {
		place := [2]string{write.Namespace, write.Name}
		if _, adopted := clones[place]; adopted && write.Resource == "secrets" && write.Code < 300 {
			require.Equal(t, "update", write.Verb)
			marking[place]++
		}
	}
	for place := range clones {
		once[place] = 1
		e.Restarted(place[0], stamps[place[0]])
	}
	require.Equal(t, once, marking, "one write each, which marks it")

	for place := range clones {
		e.Edit("mig-src", place[1], func(s *corev1.Secret) { s.Data["token"] = []byte("2") })
	}
	for place := range clones {
		e.HasClone(place[0], place[1], map[string]string{"token": "2"})
		e.Restarted(place[0], stamps[place[0]], "Deployment/by-env")
	}
}
