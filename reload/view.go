package reload

import (
	"cmp"
	"slices"
	"time"
)

// View is which restarts wait, as the controller knows it. It sends no request
// and changes nothing.
type View struct{ waits *waits }

// Waiting is a restart that does not begin yet; by names alone.
type Waiting struct {
	Wait

	// Consumer is as Kind/namespace/name.
	Consumer string
	// Rule is empty where the owner of the consumer asks, and may be so for
	// WaitMissing where nobody does.
	Rule string
	// Changed, and for WaitMissing Missing, name objects.
	Changed, Missing []string
	// Since is when it began to wait for that.
	Since time.Time
}

// Waiting lists every restart that waits, those first that have for longest.
func (v *View) Waiting() []Waiting {
	all := v.waits.all()
	slices.SortFunc(all, func(a, b Waiting) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Consumer, b.Consumer))
	})
	return all
}

func (w *waits) all() []Waiting {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]Waiting, 0, len(w.waiters))
	for _, one := range w.waiters {
		all = append(all, one.Waiting)
	}
	return all
}
