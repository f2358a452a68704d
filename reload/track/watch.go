package track

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headwater-k8s/headwater/internal/dedupe"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/health"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// RolloutWatch tracks the rollouts that Headwater started, until they have been healthy
// for RolloutTimeout. A new leader finds them by the annotations of workloads.
type RolloutWatch struct {
	gauge   *prometheus.GaugeVec
	counter *prometheus.CounterVec

	mu      sync.Mutex
	watched map[kinds.Key]*Watched
}

// Watched is one watched rollout.
type Watched struct {
	RestartedAt time.Time
	Rule        string
	// Causes are the objects that users edited; nil means unknown.
	Causes []decide.Cause
	// changed is true if its workload or a pod changed since it was last judged. Due is
	// when to judge it anyway.
	changed bool
	Due     time.Time
	Health  health.RolloutHealth
}

// NewRolloutWatch allocates a RolloutWatch. It counts what is stuck in gauge, and what
// became stuck in counter.
func NewRolloutWatch(gauge *prometheus.GaugeVec, counter *prometheus.CounterVec) *RolloutWatch {
	return &RolloutWatch{gauge: gauge, counter: counter, watched: map[kinds.Key]*Watched{}}
}

// Begin watches the rollout of a restart of w. It replaces the watch of an earlier one. A
// stamp on what runs to completion, or on an object without a pod template, starts no
// rollout.
func (r *RolloutWatch) Begin(w *workload.Workload, restartedAt time.Time, rule string, causes []decide.Cause) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.Info().RunsToCompletion || w.IsTarget() {
		return
	}
	k := w.Key()
	r.drop(k)
	r.watched[k] = &Watched{RestartedAt: restartedAt, Rule: rule, Causes: causes, changed: true}
}

// Changed marks the rollout of k, if watched, to be judged.
func (r *RolloutWatch) Changed(k kinds.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one, known := r.watched[k]; known {
		one.changed = true
	}
}

// Take returns the rollouts to judge at now.
func (r *RolloutWatch) Take(now time.Time) map[kinds.Key]Watched {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := map[kinds.Key]Watched{}
	for k, one := range r.watched {
		if one.changed || !one.Due.IsZero() && !one.Due.After(now) {
			one.changed, one.Due = false, time.Time{}
			taken[k] = *one
		}
	}
	return taken
}

// Judged stores the result for the rollout that started at RestartedAt, and when to
// judge it again. news is true if it was not stuck for this reason before.
func (r *RolloutWatch) Judged(k kinds.Key, found Watched, now time.Time) (news bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one, known := r.watched[k]
	if !known || !one.RestartedAt.Equal(found.RestartedAt) {
		return false // another restart came in between
	}
	news = found.Health.Health == health.Stuck && (one.Health.Health != health.Stuck || one.Health.Reason != found.Health.Reason)
	r.count(one, -1)
	one.Health, one.Due, one.Rule, one.Causes = found.Health, found.Due, found.Rule, found.Causes
	r.count(one, +1)
	if news {
		r.counter.WithLabelValues(one.Rule, string(one.Health.Reason)).Inc()
	}
	if one.Health.Health == health.Stuck && (one.Due.IsZero() || one.Due.After(now.Add(dedupe.Interval))) {
		one.Due = now.Add(dedupe.Interval) // to repeat the report
	}
	return news
}

// Forget stops watching k.
func (r *RolloutWatch) Forget(k kinds.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(k)
}

// Clear stops all watches when leading ends.
func (r *RolloutWatch) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.watched {
		r.drop(k)
	}
}

func (r *RolloutWatch) drop(k kinds.Key) {
	if one, known := r.watched[k]; known {
		r.count(one, -1)
		delete(r.watched, k)
	}
}

func (r *RolloutWatch) count(one *Watched, by float64) {
	if one.Health.Health == health.Stuck {
		r.gauge.WithLabelValues(one.Rule, string(one.Health.Reason)).Add(by)
	}
}

// StuckRollout is a rollout that does not complete. It contains only names.
type StuckRollout struct {
	// Consumer has the form Kind/namespace/name.
	Consumer string
	// Rule is empty for an opt-in.
	Rule   string
	Reason workload.StuckReason
	// Pod is the one that holds it up; empty if there is none, or that is not known.
	Pod string
}

// StuckRollouts returns those that are stuck, by consumer.
func (r *RolloutWatch) StuckRollouts() (all []StuckRollout) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, one := range r.watched {
		if one.Health.Health == health.Stuck {
			all = append(all, StuckRollout{Consumer: k.String(), Rule: one.Rule, Reason: one.Health.Reason, Pod: one.Health.Pod})
		}
	}
	slices.SortFunc(all, func(a, b StuckRollout) int { return cmp.Compare(a.Consumer, b.Consumer) })
	return all
}

// Stuck lists the workloads that are stuck because of one object, sorted.
type Stuck struct {
	Workloads []kinds.Key
	// Reason and Pod are those of the first.
	Reason workload.StuckReason
	Pod    string
}

// Stuck returns the stuck rollouts by the objects that caused them.
func (r *RolloutWatch) Stuck() map[decide.Cause]Stuck {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := map[decide.Cause]Stuck{}
	for k, one := range r.watched {
		if one.Health.Health != health.Stuck {
			continue
		}
		for _, cause := range one.Causes {
			is := of[cause]
			if len(is.Workloads) == 0 || k.Compare(slices.MinFunc(is.Workloads, kinds.Key.Compare)) < 0 {
				is.Reason, is.Pod = one.Health.Reason, one.Health.Pod
			}
			is.Workloads = append(is.Workloads, k)
			of[cause] = is
		}
	}
	for _, is := range of {
		slices.SortFunc(is.Workloads, kinds.Key.Compare)
	}
	return of
}
