// Package survey reads from the caches what exists and reports how each clone
// stands.
//
//	caches, approvals, recorded removals ──▶ Reader ──▶ plan.State ──▶ CloneStatus
//
// The controller, the metrics, the page and the commands all read through
// [Reader], so they agree. It never writes, except for [SetApproval], by which a
// person approves what is held.
package survey
