package main

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// marking follows a mark on each of several objects.
type marking struct {
	// before are the marks that the objects had.
	before map[types.UID]string
	// marked are those that bear another one, noted those of which somebody has
	// taken note.
	marked, noted map[types.UID]bool
}

func newMarking() *marking {
	return &marking{before: map[types.UID]string{}, marked: map[types.UID]bool{}, noted: map[types.UID]bool{}}
}

// timed times act until the last object bears another mark. It returns once note
// is taken of all: what is left to do then would burden the next round. read is
// what an event says of one object.
func (m *marking) timed(
	ctx context.Context, act func(context.Context) error, events *stream, read func(watch.Event) (of types.UID, now string, noted bool),
) (took time.Duration, err error) {
	began := time.Now()
	_, err = timed(ctx, act, func(ctx context.Context) error {
		return events.until(ctx, func(event watch.Event) bool {
			of, now, noted := read(event)
			before, ours := m.before[of]
			if !ours || now == before {
				return false
			}
			if m.marked[of] = true; took == 0 && len(m.marked) == len(m.before) {
				took = time.Since(began)
			}
			if noted {
				m.noted[of] = true
			}
			return len(m.noted) == len(m.before)
		})
	})
	return took, err
}
