// Package counts counts clones by rule, state and reason, as their state changes.
//
//	caches, reconciles ──▶ changed namespaces ──▶ Counter ──▶ Snapshot
//
// The state of a clone depends on its namespace, source, rule and approvals, on failed
// writes and on the time. A [Counter] therefore never adjusts a count by what an event
// says. It keeps the counts of each namespace, recounts the namespaces in which
// something changed since the last Snapshot, and keeps the totals.
package counts
