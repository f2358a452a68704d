package report

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headwater-k8s/headwater/internal/dedupe"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/health"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func rolloutStuck(w *workload.Workload, one Watched) events.Event {
	event := about(w)
	event.Rule, event.Warning, event.Persisting, event.Reason, event.Action = one.Rule, true, true, "RolloutStuck", "Restart"
	event.Note = "Headwater restarted it at " + one.RestartedAt.UTC().Format(time.RFC3339)
	if len(one.Causes) > 0 {
		event.Note += ", because this changed: " + someOf(causeNames(one.Causes), maxMissing)
	}
	event.Note += ". The rollout does not complete: " + whyStuck(one.Health.Reason)
	if one.Health.Pod != "" {
		event.Note += ", as in pod " + one.Health.Pod
	}
	event.Note += ". If the change is wrong, undo it: the workload is then restarted again"
	return event
}

func causeNames(causes []decide.Cause) []string {
	names := make([]string, 0, len(causes))
	for _, cause := range causes {
		names = append(names, cause.Object.String())
	}
	return names
}

// whyStuck describes reason for users.
func whyStuck(reason workload.StuckReason) string {
	switch reason {
	case workload.StuckDeadline:
		return "it exceeded its progress deadline (" + string(reason) + ")"
	case workload.StuckNoProgress:
		return "no pod was replaced for " + fmt.Sprint(workload.RolloutTimeout.Minutes()) + " minutes"
	case workload.StuckCrashing, workload.StuckConfig, workload.StuckNotCreated, workload.StuckNotRun, workload.StuckImagePull, workload.StuckInvalidImage:
		return "its new pods fail (" + string(reason) + ")"
	}
	return string(reason)
}

// stuckNote is the note of the Event on the object that changed.
func stuckNote(of stuckOf) string {
	names := make([]string, 0, maxNamed)
	for _, k := range of.workloads[:min(maxNamed, len(of.workloads))] {
		names = append(names, k.String())
	}
	note := "1 workload that was restarted for it does not complete its rollout"
	if n := len(of.workloads); n > 1 {
		note = fmt.Sprintf("%d workloads that were restarted for it do not complete their rollouts", n)
	}
	note += ": " + strings.Join(names, ", ")
	if more := len(of.workloads) - len(names); more > 0 {
		note += fmt.Sprintf(" and %d more", more)
	}
	return note + ". Of the first, " + whyStuck(of.reason)
}

// RolloutWatch tracks the rollouts that Headwater started, until they have been healthy
// for RolloutTimeout. A new leader finds them by the annotations of workloads.
type RolloutWatch struct {
	gauge   *prometheus.GaugeVec
	counter *prometheus.CounterVec

	mu       sync.Mutex
	watched  map[kinds.Key]*Watched
	reported map[decide.Cause]reportedStuck
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

// NewRolloutWatch allocates a RolloutWatch that reports to the gauges of m.
func NewRolloutWatch(m *Metrics) *RolloutWatch {
	return &RolloutWatch{gauge: m.stuck, counter: m.becameStuck, watched: map[kinds.Key]*Watched{}, reported: map[decide.Cause]reportedStuck{}}
}

// Begin watches the rollout of a restart. It replaces the watch of an earlier restart
// of k.
func (r *RolloutWatch) Begin(k kinds.Key, restartedAt time.Time, rule string, causes []decide.Cause) {
	r.mu.Lock()
	defer r.mu.Unlock()
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

// stuckOf lists the workloads that are stuck because of one object, sorted.
type stuckOf struct {
	workloads []kinds.Key
	reason    workload.StuckReason // of the first
}

func (r *RolloutWatch) byCause() map[decide.Cause]stuckOf {
	of := map[decide.Cause]stuckOf{}
	for k, one := range r.watched {
		if one.Health.Health != health.Stuck {
			continue
		}
		for _, cause := range one.Causes {
			is := of[cause]
			if len(is.workloads) == 0 || k.Compare(slices.MinFunc(is.workloads, kinds.Key.Compare)) < 0 {
				is.reason = one.Health.Reason
			}
			is.workloads = append(is.workloads, k)
			of[cause] = is
		}
	}
	for _, is := range of {
		slices.SortFunc(is.workloads, kinds.Key.Compare)
	}
	return of
}

// reportedStuck is the last report about an object, and its time. first is when a
// rollout was first found to be stuck.
type reportedStuck struct {
	note      string
	first, at time.Time
}

// Notes returns the reports about objects that are due at now: shortly after the first
// workload is stuck, then at most every summaryMaxDelay if the note changed, and every
// dedupe.Interval if not.
func (r *RolloutWatch) Notes(now time.Time) map[decide.Cause]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	due, stuck := map[decide.Cause]string{}, r.byCause()
	for cause := range r.reported {
		if _, still := stuck[cause]; !still {
			delete(r.reported, cause)
		}
	}
	for cause, of := range stuck {
		last, known := r.reported[cause]
		if !known {
			last.first = now
		}
		note := stuckNote(of)
		wait := summaryMaxDelay
		switch {
		case last.at.IsZero():
			last.at, wait = last.first, summaryQuiet
		case note == last.note:
			wait = dedupe.Interval
		}
		if now.Sub(last.at) >= wait {
			due[cause] = note
			r.reported[cause] = reportedStuck{note, last.first, now}
		} else if !known {
			r.reported[cause] = reportedStuck{first: now}
		}
	}
	return due
}

// EmitStuck records an Event that the rollout of w is stuck, if one is due.
func (r *Reporter) EmitStuck(w *workload.Workload, one Watched) {
	event := rolloutStuck(w, one)
	if say, _ := r.Repeats.ShouldEmit(w.Key(), TopicStuck, event.Note); say {
		r.events.Record(event)
	}
}
