// Package evidence keeps mark.Evidence on the revisions that are being delivered: what
// failed before a stage opened, and what the readers of the revision show since.
//
// In: the caches, and who consumes a clone ([Find]). Out: one annotation on the object that
// records the revision, at most once a second and only if it changes; nothing on clones.
// Only the namespaces in which something changed are judged again.
package evidence
