// Package delivery decides which content of a source a namespace gets, and when
// the next namespaces may have it.
//
//	rule, revisions, clone, namespace ──▶ Assign  ──▶ the revision for the clone
//	stage, clones with their reports  ──▶ Advance ──▶ wait, next stage, passed, failed
//
// The package is pure: it knows no clock, client or logger. What it decides on is
// stored in the cluster: each recorded revision is an object of its own.
package delivery
