// Package decide answers whether a request may change a protected object.
//
//	Request, rules, World ──▶ Decide ──▶ Verdict{Allowed, Reason, Message}
//
// The webhook asks it for every review. It gives the answer that the policies of
// package manifests give in CEL; a test compares the two. The package is pure:
// what exists in the cluster comes in as a [World].
package decide
