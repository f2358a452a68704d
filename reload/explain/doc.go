// Package explain answers `headwater explain` and `headwater consumers`.
//
// It uses the same decision functions as the controller, on caches of its own, and
// writes nothing. It does not know what only the leader remembers.
package explain
