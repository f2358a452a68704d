// Package board knows how every clone stands. Metrics, RuleStatuses and the page read
// it.
//
//	keys of the queue, ends of reconciles ──▶ changed targets ──▶ Board ──▶ readers
//
// The state of a clone depends on its namespace, source, rule and approvals, on failed
// writes and on the time. A [Board] therefore never adjusts a state by what an event
// says. It keeps how each target stands, and evaluates the targets whose state may have
// changed when somebody reads. So it also knows targets that wait to be reconciled, and
// works on a replica that reconciles nothing.
package board
