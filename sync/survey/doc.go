// Package survey reads the caches and reports the status of each clone.
//
//	caches, approvals, recorded removals ──▶ Reader ──▶ plan.State ──▶ CloneStatus
//
// The controller, the metrics, the page and the commands all read through
// [Reader], so they agree. The package writes only what users ask for, by
// [ChangeApproval] and [ChangeRequests], and the leader's record of removals.
package survey
