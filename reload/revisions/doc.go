// Package revisions reports on clones how the consumers of the revision that is being
// delivered do.
//
//	revisions, clones, changes of consumers ──▶ Reporter ──▶ one patch per changed report
//
// sync reads the reports from its own caches. The package finds out which clones need a
// report and when; what the report says is decided by the caller and health.
package revisions
