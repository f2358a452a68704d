// Package revisions stores the recorded revisions of sources in the cluster.
//
// A revision is an immutable object of the source's own kind in Headwater's
// namespace, so that the bytes of a Secret never leave Secrets. Its annotations
// say how far its delivery came; see delivery.Revision.
//
// In: watch events. Out: a delivery.History for each rule and source, and writes.
// The package decides nothing.
package revisions
