// Package progress remembers what happened to clones: failed writes, drift
// repairs, fights with another writer, the propagation of a change.
//
// In: outcomes of reconciles, with the time. Out: what metrics, Events and the
// status say about them. Nothing here is stored: a new leader starts empty. The
// types are not safe for concurrent use and read no clock.
package progress
