// Package report reports what was done: to users by Events, and to metrics and logs.
//
//	Decision and its result ──▶ Reporter ──▶ Events, log lines, metrics, the page
//
// What concerns many consumers becomes one summary on the object that changed. No value
// of a Secret or ConfigMap reaches this package.
package report
