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

// outcomeKind is what came of a change for one consumer.
type outcomeKind int

const (
	outcomeRestarted outcomeKind = iota
	outcomeAnnotated
	outcomeRefreshed
	outcomeFailed
	// outcomeNotRestarted is of what no pod template is known of.
	outcomeNotRestarted
	outcomes
	// OutcomeWaits is counted by waits, for as long as it lasts.
	OutcomeWaits outcomeKind = -1
)

// outcomeOf is what a step that was carried out means to people. That data was
// adopted, or a kubelet asked once more, is no news.
func outcomeOf(to workload.Consumer, step spec.Step) (came outcomeKind, news bool) {
	switch {
	case step == spec.StepRestart && to.Info().Template == nil:
		return outcomeAnnotated, true
	case step == spec.StepRestart:
		return outcomeRestarted, true
	default:
		return outcomeRefreshed, step == spec.StepRefresh
	}
}

// summaries sum up what came of the changes of objects until it is told, so that a
// thousand consumers are one piece of news. They know no clock: the time is told.
// They are lost with the process, and an object is dropped as soon as there is
// nothing to tell of it.
type summaries map[decide.Cause]*summaryOf

// summaryOf is that of one object.
type summaryOf struct {
	counts [outcomes]int
	// consumers are the first maxNamed of them, more is true when there are
	// others.
	consumers []kinds.Key
	more      bool
	// first and last are when news came that were not told yet; zero without any.
	first, last time.Time
	// told is true when all that waits was told of.
	told bool
}

const (
	// tallyQuiet is how long nothing more comes before it is told: a debounce,
	// and some. Those of a rule with a longer one are told apart from what is
	// refreshed at once.
	tallyQuiet = 3 * time.Second
	// tallyPatience is how long it waits for what does not come to rest, and for
	// the rest of those who wait.
	tallyPatience = 5 * time.Minute
)

// add takes in what came of changes of those objects for k.
func (t summaries) add(causes []decide.Cause, k kinds.Key, came outcomeKind, now time.Time) {
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
		if came != OutcomeWaits {
			of.counts[came]++
		}
		switch {
		case slices.Contains(of.consumers, k):
		case len(of.consumers) < maxNamed:
			of.consumers = append(of.consumers, k)
		default:
			of.more = true
		}
	}
}

// summary is what is told of the consumers of one object.
type summary struct {
	decide.Cause
	note string
}

// take returns what is due at now, while so many wait.
func (t summaries) take(now time.Time, waits map[decide.Cause]track.WaitCount) []summary {
	var due []summary
	for cause, of := range t {
		wait := waits[cause]
		if of.due(wait, now) {
			if note := of.text(wait); note != "" {
				due = append(due, summary{cause, note})
			}
			*of = summaryOf{told: true}
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
	case t.told && wait.Waiting > 0:
		return now.Sub(t.first) >= tallyPatience
	default:
		return now.Sub(t.last) >= tallyQuiet || now.Sub(t.first) >= tallyPatience
	}
}

// text is empty when by now there is nothing to tell.
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
	count(t.counts[outcomeNotRestarted], "1 not restarted (no pod template)", "%d not restarted (no pod template)")
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
