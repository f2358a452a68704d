package sync

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

// Invariant 4: anybody may write by the name of our field manager.
func TestAForgedFieldManagerMakesNoClone(t *testing.T) {
	e := newEnv(t)
	e.StageOf("forged", map[string]string{"k": "ours"})
	e.Secret("forged-src", "fixed", map[string]string{"k": "ours"})
	theirs := map[string]string{"k": "theirs"}
	e.Secret("forged-a", "shared", theirs)
	fixed, immutable := lab.Secret("forged-a", "fixed", theirs), true
	fixed.Immutable = &immutable
	e.Create("forged-a", fixed)
	e.ClusterRole("forged-patcher", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"patch"}})
	e.Grant("forged-a", "forged-patcher", "forged-mallory")
	rule := `
- name: forged-%[1]s
  source: {kind: Secret, namespace: forged-src, name: %[1]s}
  sync: {namespaces: {include: [forged-a]}}
`
	e.Start(fmt.Sprintf(rule, "shared") + fmt.Sprintf(rule, "fixed"))
	before := map[string]types.UID{}
	for _, name := range []string{"shared", "fixed"} {
		e.HasEvent("forged-a", name, "Conflict")
		before[name] = e.Get("forged-a", name).UID
		_, err := e.Client("forged-mallory").CoreV1().Secrets("forged-a").Patch(t.Context(), name, types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"x":"y"}}}`), metav1.PatchOptions{FieldManager: mark.FieldManager})
		require.NoError(t, err)
	}
	e.Stays(func(context.Context) error {
		for name, uid := range before {
			now := e.Get("forged-a", name)
			if now == nil || now.UID != uid {
				return fmt.Errorf("%s was deleted", name)
			}
			if err := lab.SameData(now, theirs); err != nil {
				return err
			}
		}
		return nil
	})
}

// A clone cannot be frozen into being deleted: what only the field manager says
// is ours is left alone where it cannot be put right.
func TestAFrozenCloneWithoutItsLabelIsReported(t *testing.T) {
	e := newEnv(t)
	e.StageOf("frozen", map[string]string{"k": "v"})
	e.Start(lab.OneRule("frozen"))
	e.HasClone("frozen-a", "shared", map[string]string{"k": "v"})
	uid := e.Get("frozen-a", "shared").UID
	e.Edit("frozen-a", "shared", func(s *corev1.Secret) {
		delete(s.Labels, mark.CloneLabel)
		immutable := true
		s.Immutable, s.Data = &immutable, map[string][]byte{"k": []byte("wrong")}
	})
	e.HasEvent("frozen-a", "shared", "Conflict")
	require.Equal(t, uid, e.Get("frozen-a", "shared").UID)
}

// Invariant 11: what admission of others says of a clone is theirs to say.
func TestARefusalThatQuotesAValueIsToldWithoutIt(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("quote-src", "quote-a")
	for resource, manifest := range map[string]string{
		"validatingadmissionpolicies": `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: quotes}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: quote-a}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [secrets]}]
  validations:
  - expression: '!has(object.data.password)'
    messageExpression: '"weak password: " + string(object.data.password)'
`,
		"validatingadmissionpolicybindings": `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: quotes}
spec: {policyName: quotes, validationActions: [Deny]}
`,
	} {
		client := e.Dynamic().Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource})
		_, err := client.Create(t.Context(), e.Manifest(manifest), metav1.CreateOptions{})
		require.NoError(t, err)
		t.Cleanup(func() { _ = client.Delete(context.WithoutCancel(t.Context()), "quotes", metav1.DeleteOptions{}) })
	}
	probe := e.Manifest("{apiVersion: v1, kind: Secret, metadata: {name: probe}, stringData: {password: x}}")
	e.Eventually(func(ctx context.Context) error {
		_, err := e.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace("quote-a").
			Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return lab.ErrorIf(err == nil, "not refused yet")
	})
	e.Secret("quote-src", "shared", map[string]string{"password": "hunter2-hunter2"})
	e.Start(lab.OneRule("quote"))
	note := e.HasEvent("quote-a", "shared", "CloneFailed")
	require.Contains(t, note, "Policy 'quotes' denied the request or failed")
	require.NotContains(t, note, "weak password")
}
