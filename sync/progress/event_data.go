package progress

import (
	"fmt"
	"strconv"
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/plural"
)

// Annotations of Events. They hold what commands read, so that the note is a
// sentence for people and may change.
const (
	// EventRule is the rule of a CloneFailed or Propagated Event.
	EventRule = mark.Domain + "rule"
	// EventError is why a clone could not be written; it is on CloneFailed.
	EventError = mark.Domain + "error"
	// The figures of a Propagated Event: how many clones were written, how many
	// failed, and the time from the change to the last write, such as 1.5s.
	eventClones   = mark.Domain + "clones"
	eventFailing  = mark.Domain + "failing"
	eventDuration = mark.Domain + "duration"
)

// MaxEventError bounds the copy of an error on an Event, in bytes.
const MaxEventError = 4096

// FailureOf returns the message of a clone whose write failed, as View reports
// it, from the annotations of a CloneFailed Event; empty when they hold none.
func FailureOf(annotations map[string]string) string {
	cause := annotations[EventError]
	if cause == "" {
		return ""
	}
	return cause + Retrying
}

// Propagation is how a change of a source reached the clones of a rule.
type Propagation struct {
	Rule            string
	Clones, Failing int
	Took            time.Duration
}

// String is the note of the Event.
func (p Propagation) String() string {
	note := fmt.Sprintf("rule %q: %s written in %s", p.Rule, plural.Of(p.Clones, "clone"), p.Took)
	if p.Failing > 0 {
		note += fmt.Sprintf(", %d failing", p.Failing)
	}
	return note
}

func (p Propagation) Annotations() map[string]string {
	return map[string]string{
		EventRule: p.Rule, eventClones: strconv.Itoa(p.Clones), eventFailing: strconv.Itoa(p.Failing), eventDuration: p.Took.String(),
	}
}

// PropagationOf reads the annotations of a Propagated Event; ok is false when
// one is missing or cannot be read.
func PropagationOf(annotations map[string]string) (p Propagation, ok bool) {
	p.Rule = annotations[EventRule]
	var errs [3]error
	p.Clones, errs[0] = strconv.Atoi(annotations[eventClones])
	p.Failing, errs[1] = strconv.Atoi(annotations[eventFailing])
	p.Took, errs[2] = time.ParseDuration(annotations[eventDuration])
	return p, p.Rule != "" && errs == [3]error{}
}
