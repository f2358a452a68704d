package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/track"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// outcomeKind is the result of a change for one consumer.
type outcomeKind int

const (
	outcomeRestarted outcomeKind = iota
	outcomeAnnotated
	outcomeRefreshed
	outcomeFailed
	// OutcomeNotRestarted is that Headwater knows no pod template of the consumer.
	OutcomeNotRestarted
	outcomes
	// outcomeWaits is counted by track.Memory while it lasts.
	outcomeWaits outcomeKind = -1
)

// outcomeOf returns the reported result of a step. Adopted baselines and confirmations
// are not reported.
func outcomeOf(to workload.Consumer, step spec.Step) (outcome outcomeKind, news bool) {
	switch {
	case step == spec.StepRestart && to.Info().StampAt() == nil:
		return outcomeAnnotated, true
	case step == spec.StepRestart:
		return outcomeRestarted, true
	default:
		return outcomeRefreshed, step == spec.StepRefresh
	}
}

// summaries collects the results of changes by object, so that many consumers lead to
// one Event. Callers pass the current time. All is lost with the process. An object is
// dropped once there is nothing to report.
type summaries map[decide.Cause]*summaryOf

// summaryOf is the summary of one object.
type summaryOf struct {
	counts [outcomes]int
	// consumers are the first MaxNamed of them. more is true if there are others.
	consumers []kinds.Key
	more      bool
	// first and last are the times of unreported results; zero if there are none.
	first, last time.Time
	// waitingReported is true if everything that waits was reported.
	waitingReported bool
}

const (
	// summaryQuiet is how long no result must arrive before a report: the default
	// debounce, and some more. Restarts with a longer debounce are reported separately
	// from refreshes.
	summaryQuiet = 3 * time.Second
	// summaryMaxDelay is how long a report waits at most, and how often waiting
	// restarts are reported.
	summaryMaxDelay = 5 * time.Minute
)

// add counts the result of changes of those objects for k.
func (t summaries) add(causes []decide.Cause, k kinds.Key, outcome outcomeKind, now time.Time) {
	for _, cause := range causes {
		of := t[cause]
		if of == nil {
			of = &summaryOf{}
			t[cause] = of
		}
		if of.first.IsZero() {
			of.first = now
		}
		of.last = now
		if outcome != outcomeWaits {
			of.counts[outcome]++
		}
		switch {
		case slices.Contains(of.consumers, k):
		case len(of.consumers) < MaxNamed:
			of.consumers = append(of.consumers, k)
		default:
			of.more = true
		}
	}
}

// summary is the report about one object.
type summary struct {
	decide.Cause
	note string
}

// take returns the reports that are due at now. waits are the waiting restarts.
func (t summaries) take(now time.Time, waits map[decide.Cause]track.WaitCount) []summary {
	var due []summary
	for cause, of := range t {
		wait := waits[cause]
		if of.due(wait, now) {
			if note := of.text(wait); note != "" {
				due = append(due, summary{cause, note})
			}
			*of = summaryOf{waitingReported: true}
		}
		if of.first.IsZero() && wait.Waiting == 0 {
			delete(t, cause)
		}
	}
	return due
}

func (t *summaryOf) due(wait track.WaitCount, now time.Time) bool {
	switch {
	case t.first.IsZero():
		return false
	case t.waitingReported && wait.Waiting > 0:
		return now.Sub(t.first) >= summaryMaxDelay
	default:
		return now.Sub(t.last) >= summaryQuiet || now.Sub(t.first) >= summaryMaxDelay
	}
}

// text is empty if there is nothing to report.
func (t *summaryOf) text(wait track.WaitCount) string {
	var parts []string
	count := func(n int, one, several string) {
		switch {
		case n == 1:
			parts = append(parts, one)
		case n > 1:
			parts = append(parts, fmt.Sprintf(several, n))
		}
	}
	count(t.counts[outcomeRestarted], "1 restarted", "%d restarted")
	count(t.counts[outcomeAnnotated], "1 annotated", "%d annotated")
	count(t.counts[outcomeRefreshed], "1 pod refreshed", "%d pods refreshed")
	count(t.counts[outcomeFailed], "1 failed", "%d failed")
	count(wait.Held, "1 held", "%d held")
	count(wait.Waiting, "1 waiting", "%d waiting")
	count(t.counts[OutcomeNotRestarted], "1 not restarted (no pod template)", "%d not restarted (no pod template)")
	if len(parts) == 0 {
		return ""
	}
	names := make([]string, 0, len(t.consumers))
	for _, k := range t.consumers {
		names = append(names, k.String())
	}
	note := strings.Join(parts, ", ") + ": " + strings.Join(names, ", ")
	if t.more {
		note += " and others"
	}
	return note
}
