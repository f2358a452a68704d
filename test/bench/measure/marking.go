package measure

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Marking follows a mark on each of several objects.
type Marking struct {
	// Before are the marks that the objects had.
	Before map[types.UID]string
	// marked are those that bear another one, noted those of which somebody has
	// taken note.
	marked, noted map[types.UID]bool
}

// NewMarking follows nothing yet.
func NewMarking() *Marking {
	return &Marking{Before: map[types.UID]string{}, marked: map[types.UID]bool{}, noted: map[types.UID]bool{}}
}

// Timed times act until the last object bears another mark. It returns once note
// is taken of all: what is left to do then would burden the next round. read is
// what an event says of one object.
func (m *Marking) Timed(
	ctx context.Context, act func(context.Context) error, events *Stream, read func(watch.Event) (of types.UID, now string, noted bool),
) (took time.Duration, err error) {
	began := time.Now()
	_, err = Timed(ctx, act, func(ctx context.Context) error {
		return events.Until(ctx, func(event watch.Event) bool {
			of, now, noted := read(event)
			before, ours := m.Before[of]
			if !ours || now == before {
				return false
			}
			if m.marked[of] = true; took == 0 && len(m.marked) == len(m.Before) {
				took = time.Since(began)
			}
			if noted {
				m.noted[of] = true
			}
			return len(m.noted) == len(m.Before)
		})
	})
	return took, err
}

// Marked is how many bear another mark by now.
func (m *Marking) Marked() int { return len(m.marked) }
