// Package progress remembers what happened to clones: failed writes, drift
// repairs, fights with another writer, the propagation of a change.
//
// In: outcomes of reconciles, with the time. Out: what metrics, Events and the
// status say about them. Nothing here is stored: a new leader starts empty. No
// type reads a clock. Tracker and Guard are safe for concurrent use.
package progress
