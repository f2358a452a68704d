package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/harness"
)

// yes is a Secret that a webhook judges which allows everything.
const yes = "yes"

// sayYes registers that webhook: as Headwater's is, by the same conditions but
// for another Secret, and with a server of the bench's own.
func (a *arena) sayYes(ctx context.Context) (stop func(), err error) {
	server := httptest.NewTLSServer(http.HandlerFunc(allow))
	configurations := a.admin.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	var config *admissionregistrationv1.ValidatingWebhookConfiguration
	err = harness.Eventually(ctx, func(ctx context.Context) error {
		config, err = configurations.Get(ctx, webhookConfiguration, metav1.GetOptions{})
		return err
	})
	if err != nil {
		server.Close()
		return nil, err
	}
	webhook := config.Webhooks[0]
	webhook.Name = "yes.bench.headwater.dev"
	url := server.URL + "/validate"
	webhook.ClientConfig = admissionregistrationv1.WebhookClientConfig{
		URL: &url, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
	for i, condition := range webhook.MatchConditions {
		webhook.MatchConditions[i].Expression = strings.ReplaceAll(condition.Expression, sourceNamespace+"/"+shared, sourceNamespace+"/"+yes)
	}
	_, err = configurations.Create(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "bench"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{webhook},
	}, metav1.CreateOptions{})
	return server.Close, err
}

func allow(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // the API server notices
}
