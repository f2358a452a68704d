// Package protect allows only exempt users to change a source.
//
//	AdmissionReview ──▶ webhook ──▶ decide ──▶ verdict, with reason and message
//	rules ──▶ manifests ──▶ register ──▶ policies and webhooks in the API server
//	                                        ▲
//	                              prove ────┘ verifies that they refuse
//
// In: AdmissionReviews from the API server, rules, ClusterRoleBindings. Out:
// verdicts, and the policies and webhooks that make the API server enforce the
// rules. These match only protected objects, so an outage of Headwater blocks no
// other write.
//
// Rooms, each importing only those before it: spec, decide, manifests, certs,
// prove, webhook, register.
package protect
