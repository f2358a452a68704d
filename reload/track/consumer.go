package track

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// consumer is the record of one workload, pod or target.
type consumer struct {
	// change is the change that it was not reconciled for yet.
	change *change
	write  *write
	wait   *Waiter
	// refresh is the refresh of a pod that is not confirmed yet.
	refresh *Refresh
	// undecided is the UID of a workload that this leader has seen but not decided
	// about.
	undecided types.UID
	// repairs are when drift of a target was repaired, the oldest first.
	repairs []time.Time
}

// get returns a copy of the record of k; empty if there is none.
func (m *Memory) get(k kinds.Key) consumer {
	if c := m.consumers[k]; c != nil {
		return *c
	}
	return consumer{}
}

// edit returns the record of k, allocated if needed.
func (m *Memory) edit(k kinds.Key) *consumer {
	c := m.consumers[k]
	if c == nil {
		c = &consumer{}
		m.consumers[k] = c
	}
	return c
}

// tidy drops the record c of k if it is empty.
func (m *Memory) tidy(k kinds.Key, c *consumer) {
	if c.change == nil && c.write == nil && c.wait == nil && c.refresh == nil && c.undecided == "" && c.repairs == nil {
		delete(m.consumers, k)
	}
}

// ObserveWorkload records a workload that this leader sees for the first time. Only the
// pods of such workloads can have missed a change, because the leader observes later
// ones. If a rule or an annotation selects a workload later, that starts with a first
// sight.
func (m *Memory) ObserveWorkload(change informers.Change[*workload.Workload]) {
	if change.Added || !change.Deleted && change.Old.UID != change.New.UID {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.edit(change.New.Key()).undecided = change.New.UID
	}
}

// IsUndecided reports whether this leader has not yet decided about w.
func (m *Memory) IsUndecided(w *workload.Workload) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	uid := m.get(w.Key()).undecided
	return uid != "" && uid == w.UID
}

// Decided records that the first decision about w was carried out.
func (m *Memory) Decided(w *workload.Workload) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.consumers[w.Key()]; c != nil && c.undecided == w.UID {
		c.undecided = ""
		m.tidy(w.Key(), c)
	}
}

// Refresh is a refresh of a pod, and when it was written.
type Refresh struct {
	decide.Decision

	At time.Time
}

// AddRefresh records a refresh of pod k. The posts of an unconfirmed one are added.
func (m *Memory) AddRefresh(k kinds.Key, one Refresh) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.edit(k)
	if c.refresh != nil {
		one.Posts = decide.EachOnce(c.refresh.Posts, one.Posts)
	}
	c.refresh = &one
}

// LastRefresh returns the refresh of pod k that is not confirmed yet; zero if there is
// none.
func (m *Memory) LastRefresh(k kinds.Key) Refresh {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last := m.get(k).refresh; last != nil {
		return *last
	}
	return Refresh{}
}

// EndRefresh records that the refresh of pod k needs no confirmation any more.
func (m *Memory) EndRefresh(k kinds.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.consumers[k]; c != nil {
		c.refresh = nil
		m.tidy(k, c)
	}
}

// A target is repaired at most repairLimit times within repairWindow, so that Headwater
// does not fight another writer for long.
const (
	repairWindow = 10 * time.Minute
	repairLimit  = 3
)

// AllowRepair reports whether drift of target k may be repaired now, and counts the
// repair if so.
func (m *Memory) AllowRepair(k kinds.Key, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.edit(k)
	c.repairs = slices.DeleteFunc(c.repairs, func(at time.Time) bool { return now.Sub(at) >= repairWindow })
	if len(c.repairs) >= repairLimit {
		return false
	}
	c.repairs = append(c.repairs, now)
	return true
}
