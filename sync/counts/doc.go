// Package counts counts clones by rule, state and reason, as their state changes.
//
//	caches, reconciles ──▶ changed targets ──▶ Counter ──▶ Snapshot
//
// The state of a clone depends on its namespace, source, rule and approvals, on failed
// writes and on the time. A [Counter] therefore never adjusts a count by what an event
// says. It keeps what each target counts as, looks again at the targets whose state may
// have changed since the last Snapshot, and keeps the totals.
package counts
