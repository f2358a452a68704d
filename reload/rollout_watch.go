package reload

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headwater-k8s/headwater/internal/again"
)

// rolloutWatch remembers the rollouts that Headwater began, until they are Healthy
// and have been for a while. A new leader finds them again by what is written on
// the workloads.
type rolloutWatch struct {
	gauge   *prometheus.GaugeVec
	counter *prometheus.CounterVec

	mu      sync.Mutex
	watched map[key]*watched
	told    map[Cause]toldStuck
}

// watched is one rollout.
type watched struct {
	restartedAt time.Time
	rule        string
	// causes are the objects that people edited; nil is not known.
	causes []Cause
	// changed is true when its workload or a pod has changed since it was judged
	// last, which time alone asks for at due.
	changed bool
	due     time.Time
	health  RolloutHealth
}

func newRolloutWatch(m *metrics) *rolloutWatch {
	return &rolloutWatch{gauge: m.stuck, counter: m.becameStuck, watched: map[key]*watched{}, told: map[Cause]toldStuck{}}
}

// begin watches the rollout of a restart. The former one of k, stuck or not, is
// over.
func (r *rolloutWatch) begin(k key, restartedAt time.Time, rule string, causes []Cause) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(k)
	r.watched[k] = &watched{restartedAt: restartedAt, rule: rule, causes: causes, changed: true}
}

// changed has the rollout of k judged, if it is watched.
func (r *rolloutWatch) changed(k key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one, known := r.watched[k]; known {
		one.changed = true
	}
}

// take returns the rollouts that are to be judged at now.
func (r *rolloutWatch) take(now time.Time) map[key]watched {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := map[key]watched{}
	for k, one := range r.watched {
		if one.changed || !one.due.IsZero() && !one.due.After(now) {
			one.changed, one.due = false, time.Time{}
			taken[k] = *one
		}
	}
	return taken
}

// judged records what was found of the rollout that began at restartedAt, and when
// time alone asks to judge it again. news is true when it was not stuck for that
// reason before.
func (r *rolloutWatch) judged(k key, found watched, now time.Time) (news bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one, known := r.watched[k]
	if !known || !one.restartedAt.Equal(found.restartedAt) {
		return false // another restart since
	}
	news = found.health.Health == Stuck && (one.health.Health != Stuck || one.health.Reason != found.health.Reason)
	r.count(one, -1)
	one.health, one.due, one.rule, one.causes = found.health, found.due, found.rule, found.causes
	r.count(one, +1)
	if news {
		r.counter.WithLabelValues(one.rule, string(one.health.Reason)).Inc()
	}
	if one.health.Health == Stuck && (one.due.IsZero() || one.due.After(now.Add(again.After))) {
		one.due = now.Add(again.After) // to be told again
	}
	return news
}

// forget ends the watch of k.
func (r *rolloutWatch) forget(k key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(k)
}

// clear ends all watches, as leading ends.
func (r *rolloutWatch) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.watched {
		r.drop(k)
	}
}

func (r *rolloutWatch) drop(k key) {
	if one, known := r.watched[k]; known {
		r.count(one, -1)
		delete(r.watched, k)
	}
}

func (r *rolloutWatch) count(one *watched, by float64) {
	if one.health.Health == Stuck {
		r.gauge.WithLabelValues(one.rule, string(one.health.Reason)).Add(by)
	}
}

// stuckOf are the workloads that are stuck because of one object, sorted.
type stuckOf struct {
	workloads []key
	reason    StuckReason // of the first
}

func (r *rolloutWatch) byCause() map[Cause]stuckOf {
	of := map[Cause]stuckOf{}
	for k, one := range r.watched {
		if one.health.Health != Stuck {
			continue
		}
		for _, cause := range one.causes {
			is := of[cause]
			if len(is.workloads) == 0 || k.compare(slices.MinFunc(is.workloads, key.compare)) < 0 {
				is.reason = one.health.Reason
			}
			is.workloads = append(is.workloads, k)
			of[cause] = is
		}
	}
	for _, is := range of {
		slices.SortFunc(is.workloads, key.compare)
	}
	return of
}

// toldStuck is what was told on an object last, and when; first is when it was
// first found that there is anything to tell.
type toldStuck struct {
	note      string
	first, at time.Time
}

// notes returns what is to be told on objects at now: a little after the first
// workload is stuck, after that no more often than each tallyPatience if it has
// changed, and each again.After if not.
func (r *rolloutWatch) notes(now time.Time) map[Cause]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	due, stuck := map[Cause]string{}, r.byCause()
	for cause := range r.told {
		if _, still := stuck[cause]; !still {
			delete(r.told, cause)
		}
	}
	for cause, of := range stuck {
		last, known := r.told[cause]
		if !known {
			last.first = now
		}
		note := stuckNote(of)
		wait := tallyPatience
		switch {
		case last.at.IsZero():
			last.at, wait = last.first, tallyQuiet
		case note == last.note:
			wait = again.After
		}
		if now.Sub(last.at) >= wait {
			due[cause] = note
			r.told[cause] = toldStuck{note, last.first, now}
		} else if !known {
			r.told[cause] = toldStuck{first: now}
		}
	}
	return due
}

func (r *Reporter) tellStuck(w *Workload, one watched) {
	event := rolloutStuck(w, one)
	if say, _ := r.told.say(w.key(), stuck, event.Note); say {
		r.events.Record(event)
	}
}
