package track

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

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

// update changes the record of k, and drops it if nothing is left in it.
func (m *Memory) update(k kinds.Key, change func(c *consumer)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.edit(k)
	change(c)
	m.tidy(k, c)
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
		m.update(change.New.Key(), func(c *consumer) { c.undecided = change.New.UID })
	}
}

// Decided records that the first decision about w was carried out.
func (m *Memory) Decided(w *workload.Workload) {
	m.update(w.Key(), func(c *consumer) {
		if c.undecided == w.UID {
			c.undecided = ""
		}
	})
}

// Refresh is a refresh of a pod, and when it was written.
type Refresh struct {
	decide.Decision

	At time.Time
}

// AddRefresh records a refresh of pod k. The posts of an unconfirmed one are added.
func (m *Memory) AddRefresh(k kinds.Key, one Refresh) {
	m.update(k, func(c *consumer) {
		if c.refresh != nil {
			one.Posts = decide.EachOnce(c.refresh.Posts, one.Posts)
		}
		c.refresh = &one
	})
}

// LastRefresh returns the refresh of pod k that is not confirmed yet; zero if there is
// none.
func (m *Memory) LastRefresh(k kinds.Key) Refresh {
	m.mu.Lock()
	defer m.mu.Unlock()
	return ptr.Deref(m.get(k).refresh, Refresh{})
}

// EndRefresh records that the refresh of pod k needs no confirmation any more.
func (m *Memory) EndRefresh(k kinds.Key) {
	m.update(k, func(c *consumer) { c.refresh = nil })
}

// A target is repaired at most repairLimit times within repairWindow, so that Headwater
// does not fight another writer for long.
const (
	repairWindow = 10 * time.Minute
	repairLimit  = 3
)

// AllowRepair reports whether drift of target k may be repaired now, and counts the
// repair if so.
func (m *Memory) AllowRepair(k kinds.Key, now time.Time) (allowed bool) {
	m.update(k, func(c *consumer) {
		c.repairs = slices.DeleteFunc(c.repairs, func(at time.Time) bool { return now.Sub(at) >= repairWindow })
		if allowed = len(c.repairs) < repairLimit; allowed {
			c.repairs = append(c.repairs, now)
		}
	})
	return allowed
}

// DueAt returns when the debounce of the change of k that is pending ends; zero if none is.
func (m *Memory) DueAt(k kinds.Key) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return ptr.Deref(m.get(k).change, change{}).due
}
