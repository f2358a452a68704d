package reload

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
)

// Cause is an object that a decision is about, and the rule that governs it;
// without one, the consumer's owner asks.
type Cause struct {
	Object object.Ref
	Rule   string
}

// causesOf are those of consumed that anybody wants something done about.
func causesOf(consumed []Consumed) []Cause {
	var causes []Cause
	for _, c := range consumed {
		if cause := (Cause{c.Object, c.Rule}); c.governed() && !slices.Contains(causes, cause) {
			causes = append(causes, cause)
		}
	}
	return causes
}

// outcome is what came of a change for one consumer.
type outcome int

const (
	outcomeRestarted outcome = iota
	outcomeAnnotated
	outcomeRefreshed
	outcomeFailed
	// outcomeNotRestarted is of what no pod template is known of.
	outcomeNotRestarted
	outcomes
	// outcomeWaits is counted by waits, for as long as it lasts.
	outcomeWaits outcome = -1
)

// outcomeOf is what a step that was carried out means to people. That data was
// adopted, or a kubelet asked once more, is no news.
func outcomeOf(to consumer, step Step) (came outcome, news bool) {
	switch {
	case step == StepRestart && to.form().Template == nil:
		return outcomeAnnotated, true
	case step == StepRestart:
		return outcomeRestarted, true
	default:
		return outcomeRefreshed, step == StepRefresh
	}
}

// tallies sum up what came of the changes of objects until it is told, so that a
// thousand consumers are one piece of news. They know no clock: the time is told.
// They are lost with the process, and an object is dropped as soon as there is
// nothing to tell of it.
type tallies map[Cause]*tally

// tally is that of one object.
type tally struct {
	counts [outcomes]int
	// consumers are the first maxNamed of them, more is true when there are
	// others.
	consumers []key
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
func (t tallies) add(causes []Cause, k key, came outcome, now time.Time) {
	for _, cause := range causes {
		of := t[cause]
		if of == nil {
			of = &tally{}
			t[cause] = of
		}
		if of.first.IsZero() {
			of.first = now
		}
		of.last = now
		if came != outcomeWaits {
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
	Cause
	note string
}

// take returns what is due at now, while so many wait.
func (t tallies) take(now time.Time, waits map[Cause]waitCount) []summary {
	var due []summary
	for cause, of := range t {
		wait := waits[cause]
		if of.due(wait, now) {
			if note := of.note(wait); note != "" {
				due = append(due, summary{cause, note})
			}
			*of = tally{told: true}
		}
		if of.first.IsZero() && wait.waiting == 0 {
			delete(t, cause)
		}
	}
	return due
}

func (t *tally) due(wait waitCount, now time.Time) bool {
	switch {
	case t.first.IsZero():
		return false
	case t.told && wait.waiting > 0:
		return now.Sub(t.first) >= tallyPatience
	default:
		return now.Sub(t.last) >= tallyQuiet || now.Sub(t.first) >= tallyPatience
	}
}

// note is empty when by now there is nothing to tell.
func (t *tally) note(wait waitCount) string {
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
	count(wait.held, "1 held", "%d held")
	count(wait.waiting, "1 waiting", "%d waiting")
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
