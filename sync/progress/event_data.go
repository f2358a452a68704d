package progress

import (
	"fmt"
	"strconv"
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/plural"
)

// Annotations of Events. Commands read these and never parse the note, so its text
// may change.
const (
	// EventRule is the rule of a CloneFailed or Propagated Event.
	EventRule = mark.Domain + "rule"
	// EventError is the error of a CloneFailed Event.
	EventError = mark.Domain + "error"
	// Annotations of a Propagated Event: how many clones were written, how many
	// failed, and the time from the change to the last write, such as 1.5s.
	eventClones   = mark.Domain + "clones"
	eventFailing  = mark.Domain + "failing"
	eventDuration = mark.Domain + "duration"
)

// MaxEventError bounds the copy of an error on an Event, in bytes.
const MaxEventError = 4096

// FailureOf returns the message of a failed write from the annotations of a
// CloneFailed Event, in the same words as sync.View; empty if there is none.
func FailureOf(annotations map[string]string) string {
	cause := annotations[EventError]
	if cause == "" {
		return ""
	}
	return cause + Retrying
}

// Propagation is the result of one change of a source for the clones of a rule.
type Propagation struct {
	Rule            string
	Clones, Failing int
	Took            time.Duration
}

// String returns the note of the Event.
func (p Propagation) String() string {
	note := fmt.Sprintf("rule %q: %s written in %s", p.Rule, plural.Of(p.Clones, "clone"), p.Took)
	if p.Failing > 0 {
		note += fmt.Sprintf(", %d failing", p.Failing)
	}
	return note
}

// Annotations returns the annotations of the Event; PropagationOf reads them.
func (p Propagation) Annotations() map[string]string {
	return map[string]string{
		EventRule: p.Rule, eventClones: strconv.Itoa(p.Clones), eventFailing: strconv.Itoa(p.Failing), eventDuration: p.Took.String(),
	}
}

// PropagationOf reads the annotations of a Propagated Event; ok is false if one is
// missing or not valid.
func PropagationOf(annotations map[string]string) (p Propagation, ok bool) {
	p.Rule = annotations[EventRule]
	var errs [3]error
	p.Clones, errs[0] = strconv.Atoi(annotations[eventClones])
	p.Failing, errs[1] = strconv.Atoi(annotations[eventFailing])
	p.Took, errs[2] = time.ParseDuration(annotations[eventDuration])
	return p, p.Rule != "" && errs == [3]error{}
}
