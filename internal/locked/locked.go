// Package locked keeps plain data structures safe for concurrent use, so that
// they need know nothing about locking themselves.
package locked

import "sync"

// Value is a T that one caller at a time may use.
type Value[T any] struct {
	mu    sync.Mutex
	value T
}

// New returns value, locked away.
func New[T any](value T) *Value[T] { return &Value[T]{value: value} }

// Use calls use while nobody else has the value. The value must not be kept,
// and use must not wait.
func (v *Value[T]) Use(use func(T)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	use(v.value)
}
