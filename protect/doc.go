// Package protect lets only the right people change a source.
//
//	AdmissionReview ──▶ webhook ──▶ decide ──▶ verdict, with reason and message
//	rules ──▶ manifests ──▶ register ──▶ policies and webhooks in the API server
//	                                        ▲
//	                              prove ────┘ verifies that they refuse
//
// In: AdmissionReviews from the API server, rules, ClusterRoleBindings. Out:
// verdicts, and the objects that have the API server ask for them. They are
// scoped so that an outage can block writes to protected objects alone.
//
// Rooms, each importing only those before it: spec, decide, manifests, certs,
// prove, webhook, register.
package protect
