package track

import (
	"cmp"
	"container/heap"
	"time"

	"github.com/headwater-k8s/headwater/reload/kinds"
)

// line holds the workloads that wait until a limit permits their rollout, in the order
// in which they may start. The cost of each operation is logarithmic in their number.
type line struct {
	waiting map[kinds.Key]inLine
	// namespaces orders the waiting workloads of each namespace.
	namespaces map[string]orders[kinds.Key]
	// open orders the namespaces below their limit, by their first workload.
	open orders[string]
}

// inLine is a waiting workload.
type inLine struct {
	replicas int32
	since    time.Time
}

func newLine() *line {
	l := &line{waiting: map[kinds.Key]inLine{}, namespaces: map[string]orders[kinds.Key]{}}
	l.open = newOrders(
		func(a, b string) bool {
			return l.smaller(l.namespaces[a].bySize.first(), l.namespaces[b].bySize.first())
		},
		func(a, b string) bool {
			return l.older(l.namespaces[a].bySince.first(), l.namespaces[b].bySince.first())
		},
	)
	return l
}

// add queues k, if it is not queued. room says whether its namespace is below its
// limit.
func (l *line) add(k kinds.Key, replicas int32, now time.Time, room bool) {
	since := now
	if before, waits := l.waiting[k]; waits {
		since = before.since
	}
	l.waiting[k] = inLine{replicas, since}
	if _, known := l.namespaces[k.Namespace]; !known {
		l.namespaces[k.Namespace] = newOrders(l.smaller, l.older)
	}
	l.namespaces[k.Namespace].put(k)
	l.arrange(k.Namespace, room)
}

// remove takes k out of the line.
func (l *line) remove(k kinds.Key, room bool) {
	if _, waits := l.waiting[k]; !waits {
		return
	}
	l.namespaces[k.Namespace].remove(k)
	delete(l.waiting, k)
	l.arrange(k.Namespace, room)
}

// arrange updates the position of namespace after its workloads or its limit changed.
func (l *line) arrange(namespace string, room bool) {
	of, waits := l.namespaces[namespace]
	switch {
	case waits && room && of.bySize.Len() > 0:
		l.open.put(namespace)
	default:
		l.open.remove(namespace)
	}
	if waits && of.bySize.Len() == 0 {
		delete(l.namespaces, namespace)
	}
}

// next returns the workload that may start first: the smallest one, or the oldest if
// that has waited since long or before, so that small workloads do not delay a large
// one forever.
func (l *line) next(long time.Time) (first kinds.Key, found bool) {
	if l.open.bySince.Len() == 0 {
		return kinds.Key{}, false
	}
	oldest := l.namespaces[l.open.bySince.first()].bySince.first()
	if !l.waiting[oldest].since.After(long) {
		return oldest, true
	}
	return l.namespaces[l.open.bySize.first()].bySize.first(), true
}

func (l *line) smaller(a, b kinds.Key) bool {
	return cmp.Or(cmp.Compare(l.waiting[a].replicas, l.waiting[b].replicas), a.Compare(b)) < 0
}

func (l *line) older(a, b kinds.Key) bool {
	return cmp.Or(l.waiting[a].since.Compare(l.waiting[b].since), a.Compare(b)) < 0
}

// orders ranks the same members by size and by age.
type orders[T comparable] struct{ bySize, bySince *ranking[T] }

func newOrders[T comparable](smaller, older func(a, b T) bool) orders[T] {
	return orders[T]{&ranking[T]{less: smaller, at: map[T]int{}}, &ranking[T]{less: older, at: map[T]int{}}}
}

func (o orders[T]) put(one T) {
	o.bySize.put(one)
	o.bySince.put(one)
}

func (o orders[T]) remove(one T) {
	o.bySize.remove(one)
	o.bySince.remove(one)
}

// ranking is a heap that knows the index of each member.
type ranking[T comparable] struct {
	less func(a, b T) bool
	all  []T
	at   map[T]int
}

// put adds one, or updates its position.
func (r *ranking[T]) put(one T) {
	if at, known := r.at[one]; known {
		heap.Fix(r, at)
	} else {
		heap.Push(r, one)
	}
}

// remove does not compare one, whose data may be gone.
func (r *ranking[T]) remove(one T) {
	if at, known := r.at[one]; known {
		heap.Remove(r, at)
	}
}

func (r *ranking[T]) first() T { return r.all[0] }

// Len implements heap.Interface.
func (r *ranking[T]) Len() int { return len(r.all) }

// Less implements heap.Interface.
func (r *ranking[T]) Less(i, j int) bool { return r.less(r.all[i], r.all[j]) }

// Swap implements heap.Interface.
func (r *ranking[T]) Swap(i, j int) {
	r.all[i], r.all[j] = r.all[j], r.all[i]
	r.at[r.all[i]], r.at[r.all[j]] = i, j
}

// Push implements heap.Interface.
func (r *ranking[T]) Push(one any) {
	member, _ := one.(T)
	r.at[member] = len(r.all)
	r.all = append(r.all, member)
}

// Pop implements heap.Interface.
func (r *ranking[T]) Pop() any {
	last := len(r.all) - 1
	one := r.all[last]
	r.all = r.all[:last]
	delete(r.at, one)
	return one
}
