// Package live holds values of the configuration that may change while the
// process runs.
package live

import (
	"sync"
	"sync/atomic"
)

// Value is a T in force, which readers load without a lock. The zero value is
// not usable; see New.
type Value[T any] struct {
	current atomic.Pointer[T]

	mu          sync.Mutex
	subscribers map[int]func(old, new T)
	next        int
}

// New returns a Value with value in force.
func New[T any](value T) *Value[T] {
	v := &Value[T]{subscribers: map[int]func(old, new T){}}
	v.current.Store(&value)
	return v
}

// Load returns the value in force.
func (v *Value[T]) Load() T { return *v.current.Load() }

// Swap puts value in force and then calls every subscriber, one after the other.
func (v *Value[T]) Swap(value T) {
	v.mu.Lock()
	old := v.current.Swap(&value)
	subscribers := make([]func(old, new T), 0, len(v.subscribers))
	for _, f := range v.subscribers {
		subscribers = append(subscribers, f)
	}
	v.mu.Unlock()
	for _, f := range subscribers {
		f(*old, value)
	}
}

// Subscribe calls f after each Swap until the returned function is called.
func (v *Value[T]) Subscribe(f func(old, new T)) (unsubscribe func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	id := v.next
	v.next++
	v.subscribers[id] = f
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.subscribers, id)
	}
}
