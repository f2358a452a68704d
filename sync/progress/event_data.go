package progress

import (
	"fmt"
	"strconv"
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/plural"
)

// Annotations of Events, for programs: the text of the note may change.
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

// Annotations returns the annotations of the Event.
func (p Propagation) Annotations() map[string]string {
	return map[string]string{
		EventRule: p.Rule, eventClones: strconv.Itoa(p.Clones), eventFailing: strconv.Itoa(p.Failing), eventDuration: p.Took.String(),
	}
}
