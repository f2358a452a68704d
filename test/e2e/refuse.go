package e2e

import (
	"context"
	"fmt"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const refusal = "refuse-updates"

// RefuseUpdatesOf makes the API server refuse changes of one Deployment, as
// somebody else's policy would, until AllowUpdates or the end of the test.
func (e *Env) RefuseUpdatesOf(namespace, name string) {
	e.Helper()
	fail := admissionregistrationv1.Fail
	policies := e.Admin.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	_, err := policies.Create(e.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: refusal},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				ResourceNames: []string{name},
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"*"}, Resources: []string{"deployments"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "refused by the test"}},
		},
	}, metav1.CreateOptions{})
	require.NoError(e, err)
	_, err = e.Admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(e.Context(),
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: refusal},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: refusal, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		}, metav1.CreateOptions{})
	require.NoError(e, err)
	e.Cleanup(e.AllowUpdates)
	e.Eventually(func(ctx context.Context) error {
		_, err := e.Admin.AppsV1().Deployments(namespace).Patch(ctx, name, types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"probe":"x"}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return fmt.Errorf("not refused yet")
		}
		return nil
	})
}

// AllowUpdates takes the refusal back; it may be called twice.
func (e *Env) AllowUpdates() {
	e.Helper()
	ctx := context.WithoutCancel(e.Context())
	_ = e.Admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(ctx, refusal, metav1.DeleteOptions{})
	_ = e.Admin.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(ctx, refusal, metav1.DeleteOptions{})
}
