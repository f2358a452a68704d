// Package report tells people and metrics what was done.
//
//	Decision and its outcome ──▶ Reporter ──▶ Events, log lines, metrics, the page
//
// What concerns a thousand consumers becomes one summary on the object that changed.
// No value of a Secret or ConfigMap ever gets here.
package report
