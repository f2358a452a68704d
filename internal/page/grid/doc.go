// Package grid keeps the state of every clone that the page shows.
//
//	[]Place ──▶ Grid ──▶ Snapshot, Delta, List
//
// It bounds what it remembers and reads no clock. The package is pure; its caller
// locks.
package grid
