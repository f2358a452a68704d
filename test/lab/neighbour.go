package lab

import (
	"context"
	"net"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// webhookTimeout is the longest that an API server waits for a webhook.
const webhookTimeout = 30 * time.Second

// Unanswered has the API server ask a webhook of somebody else's, which takes connections and
// never answers, about each creation and update of resource in the namespaces with the label
// LABEL=slow, until remove is called or the end of the test.
func (e *Env) Unanswered(label, group, resource string, failure admissionregistrationv1.FailurePolicyType) (remove func()) {
	e.Helper()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(e, err)
	e.Cleanup(func() { _ = silent.Close() })
	address, none := "https://"+silent.Addr().String()+"/", admissionregistrationv1.SideEffectClassNone
	webhooks := e.Admin.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	created, err := webhooks.Create(e.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "unanswered-"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "unanswered.example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &address},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "slow"}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
			}},
			FailurePolicy: &failure, SideEffects: &none, AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: new(int32(webhookTimeout / time.Second)),
		}},
	}, metav1.CreateOptions{})
	require.NoError(e, err)
	remove = func() {
		_ = webhooks.Delete(context.WithoutCancel(e.Context()), created.Name, metav1.DeleteOptions{})
	}
	e.Cleanup(remove)
	return remove
}

// IsUnanswered waits until a request, which changes nothing, is not answered any more.
func (e *Env) IsUnanswered(request func(context.Context) error) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		err := request(ctx)
		return ErrorIf(ctx.Err() == nil, "it is answered still: %v", err)
	})
}

// WellBefore waits for what, and ends the test without a verdict if the machine was so late that
// a webhook which does not answer could have timed out by then.
func (e *Env) WellBefore(what string, delays *Delays, condition func(context.Context) error) {
	e.Helper()
	began := time.Now()
	e.Eventually(condition)
	took := time.Since(began)
	e.Logf("%s took %s", what, took)
	if late := delays.Longest(began, time.Now()); took > webhookTimeout/2 && late > 2*time.Second {
		e.Inconclusive("%s took %s, and writes were seen as late as %s", what, took, late)
	}
	require.Less(e, took, webhookTimeout/2, "%s waited for a webhook that does not answer", what)
}
