package protect

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/test/lab"
)

func TestSourcesBySelectorAreProtected(t *testing.T) {
	e := newEnv(t)
	require.NoError(t, lab.EnsureNamespace(t.Context(), e.Admin, "select-src", nil))
	create := func(name string, labels map[string]string) {
		secret := lab.Secret("select-src", name, map[string]string{"k": "v"})
		secret.Labels = labels
		e.Create("select-src", secret)
	}
	create("shared", map[string]string{"share": "yes", "tier": "gold"})
	create("silver", map[string]string{"share": "yes", "tier": "silver"})
	create("draft", map[string]string{"share": "yes", "tier": "gold", "draft": ""})
	create("plain", nil)
	e.ClusterRole("select-editor", lab.SecretsEditor(), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"*"}})
	e.Grant("", "select-editor", "select-mallory")
	mallory := e.Client("select-mallory")
	secrets := mallory.CoreV1().Secrets("select-src")
	h := e.StartAlone(`
- name: select
  source:
    kind: Secret
    namespace: select-src
    selector:
      matchLabels: {share: "yes"}
      matchExpressions:
      - {key: tier, operator: In, values: [gold, platinum]}
      - {key: draft, operator: DoesNotExist}
      - {key: owner, operator: NotIn, values: [nobody]}
  protect: {}
`)
	e.protected(mallory, "select-src", "shared")
	e.Eventually(func(ctx context.Context) error { return lab.Refused(deletingNamespace("select-src")(ctx, mallory)) })
	ctx := t.Context()
	patch := func(name, body string) error {
		_, err := secrets.Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
		return err
	}
	for sentence, attempt := range map[string]error{
		"taking the label off":              patch("shared", `{"metadata":{"labels":{"share":null}}}`),
		"changing a label it selects by":    patch("shared", `{"metadata":{"labels":{"tier":"silver"}}}`),
		"adding a label that it excludes":   patch("shared", `{"metadata":{"labels":{"draft":"x"}}}`),
		"taking the label off with an edit": patch("shared", `{"metadata":{"labels":null},"data":{"k":"eA=="}}`),
		"making another of it":              patch("plain", `{"metadata":{"labels":{"share":"yes","tier":"gold"}}}`),
		"deleting it":                       secrets.Delete(ctx, "shared", metav1.DeleteOptions{}),
		"deleting the collection":           secrets.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=shared"}),
		"deleting its namespace":            mallory.CoreV1().Namespaces().Delete(ctx, "select-src", metav1.DeleteOptions{}),
	} {
		t.Run(sentence+" is refused", func(t *testing.T) { require.NoError(t, lab.Refused(attempt)) })
	}
	require.NoError(t, patch("shared", `{"metadata":{"labels":{"team":"a"}}}`), "a label of one's own")
	e.protectedByPolicy(mallory, "select-src", "shared")
	e.failsOpen()
	h.Kill()
	e.Eventually(func(ctx context.Context) error { return lab.TryEdit(ctx, e.Admin, "select-src", "shared", "x") }) // the API server has heard of it
	require.Error(t, lab.TryEdit(ctx, mallory, "select-src", "shared", "x"), "the outage leaves it protected")
	for _, name := range []string{"plain", "silver", "draft"} {
		require.NoError(t, lab.TryEdit(ctx, mallory, "select-src", name, "x"), "the outage blocks what is not selected: %s", name)
	}
	require.Error(t, patch("plain", `{"metadata":{"labels":{"share":"yes","tier":"gold"}}}`), "the outage lets sources be made")
	require.NoError(t, lab.TryEdit(ctx, e.Admin, "select-src", "shared", "x"), "break-glass")
	require.NoError(t, e.Admin.CoreV1().Namespaces().Delete(ctx, "select-src", metav1.DeleteOptions{}))
}

func TestTheGuardOfANamespaceFollowsTheLabelsOfItsSources(t *testing.T) {
	e := newEnv(t)
	e.Secret(e.Namespace("label-src"), "shared", map[string]string{"k": "v"})
	e.ClusterRole("label-editor", lab.SecretsEditor(), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"*"}})
	e.Grant("", "label-editor", "label-mallory")
	mallory := e.Client("label-mallory")
	e.Sections = "protect: {engine: Policy}\n"
	e.Start(`
- name: label
  source: {kind: Secret, namespace: label-src, selector: {matchLabels: {share: "yes"}}}
  protect: {}
`)
	remove := func(ctx context.Context) error { return deletingNamespace("label-src")(ctx, mallory) }
	label := func(value string) {
		e.Edit("label-src", "shared", func(s *corev1.Secret) { s.Labels = map[string]string{"share": value} })
	}
	for range 2 {
		label("yes")
		e.Eventually(func(ctx context.Context) error { return lab.Refused(remove(ctx)) })
		label("no")
		e.Eventually(remove)
	}
}
