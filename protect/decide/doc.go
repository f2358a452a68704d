// Package decide decides whether a request may change a protected object.
//
//	Request, rules, World ──▶ Decide ──▶ Verdict{Allowed, Reason, Message}
//
// The webhook calls it for every review. The policies of package manifests
// implement the same decision in CEL; a test compares the two. The package is
// pure: the cluster state is passed in as a [World].
package decide
