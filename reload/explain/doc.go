// Package explain answers `headwater explain` and `headwater consumers`.
//
// It decides by the same functions as the controller, on caches of its own, and
// writes nothing. What only the leader remembers, it does not know.
package explain
