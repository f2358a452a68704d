// Package protect lets only the right people change a source.
//
// In: AdmissionReviews from the API server, rules, ClusterRoleBindings. Out: a
// verdict with a reason and a message. Decide is pure and needs no network;
// the webhook only feeds it. The package also keeps the webhook's certificate
// and its ValidatingWebhookConfiguration, which is scoped so that an outage
// can only ever block writes to protected objects.
package protect
