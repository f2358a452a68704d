// Package revisions holds the recorded revisions of sources, and what is known of each:
// its verdict, and the evidence that its readers gave.
//
// A revision is an immutable object of the source's own kind in Headwater's namespace, so
// that the bytes of a Secret never leave Secrets. sync writes it and every annotation
// except Evidence, which reload alone writes.
package revisions
