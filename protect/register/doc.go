// Package register keeps the cluster-wide objects of package manifests in their
// desired state.
//
//	rules, certificates, Proof ──▶ Registration ──▶ policies, bindings, webhooks
//
// One replica runs it, the leader. It restores what others change and reports
// that. It leaves everything in place when it stops, so that sources stay
// protected.
package register
