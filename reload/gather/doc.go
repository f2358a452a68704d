// Package gather reads from the caches what a decision needs.
//
//	caches, indexes ──▶ Consumers, Gatherer ──▶ []decide.Input ──▶ Decider ──▶ Decision
//
// [Consumers] are the workloads and pods, found by what they reference. [Reader] keeps
// digests of the objects that no other cache holds. Nothing here writes to the
// cluster.
package gather
