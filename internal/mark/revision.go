package mark

import (
	"fmt"
	"strconv"
	"strings"
)

// Revision on a clone is the number of the recorded revision of its source that
// it was written from. As a label, it marks the object that records a revision.
const Revision = Domain + "revision"

// Annotations of the object that records a revision, beside Rule, Source and
// SourceUID.
const (
	// Verdict is how far the delivery of the revision came.
	Verdict = Domain + "verdict"
	// Reason is why the verdict is what it is, for people.
	Reason = Domain + "reason"
	// Stage is the name of the stage that the delivery has reached.
	Stage = Domain + "stage"
	// StageSince is when it reached that stage; see FormatTime.
	StageSince = Domain + "stage-since"
	// HealthySince is since when the stage's gate holds; see FormatTime.
	HealthySince = Domain + "healthy-since"
	// Paused says who paused the delivery, and when.
	Paused = Domain + "paused"
	// Pinned says who rolled back to the revision, and when.
	Pinned = Domain + "pinned"
	// PinnedOver is the number of the revision that the source had by then.
	PinnedOver = Domain + "pinned-over"
	// Approved says who let the delivery go on to the stage after Stage, and when.
	Approved = Domain + "approved"
	// EditedBy is the field manager that last edited the source.
	EditedBy = Domain + "edited-by"
	// SourceImmutable is "true" if the source was immutable; the object that
	// records a revision always is.
	SourceImmutable = Domain + "source-immutable"
)

// Delivery on a source says how its next revision is delivered.
const Delivery = Domain + "delivery"

// AllAtOnce is the value of Delivery that skips the stages.
const AllAtOnce = "AllAtOnce"

// Consumers on a clone of a rule with a delivery is a [ConsumersReport].
const Consumers = Domain + "consumers"

// ConsumersKnown on the object that records a revision is a resourceVersion. The
// consumers of every clone of the revision up to that version are known: such a
// clone without a report has none.
const ConsumersKnown = Domain + "consumers-known"

// ConsumersHealth is how the consumers of a clone do with a revision.
type ConsumersHealth string

// The values of ConsumersHealth.
const (
	// ConsumersHealthy: every consumer runs the revision and is available, or none
	// needs anything.
	ConsumersHealthy ConsumersHealth = "Healthy"
	// ConsumersPending: a consumer does not run the revision yet.
	ConsumersPending ConsumersHealth = "Pending"
	// ConsumersUnhealthy: a consumer fails since it got the revision.
	ConsumersUnhealthy ConsumersHealth = "Unhealthy"
)

// ConsumersReport is what the annotation Consumers says: for which revision, how
// its consumers do, and why, in names only.
type ConsumersReport struct {
	Revision int
	Health   ConsumersHealth
	// Reason is empty for ConsumersHealthy, unless something that failed before is
	// left out of account.
	Reason string
}

// String formats r, such as "7 Unhealthy: Deployment/web: CrashLoopBackOff".
func (r ConsumersReport) String() string {
	text := fmt.Sprintf("%d %s", r.Revision, r.Health)
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return text
}

// ParseConsumersReport is the inverse of ConsumersReport.String; ok is false for
// any other text.
func ParseConsumersReport(text string) (r ConsumersReport, ok bool) {
	head, reason, _ := strings.Cut(text, ": ")
	number, health, found := strings.Cut(head, " ")
	r.Health, r.Reason = ConsumersHealth(health), reason
	var err error
	if r.Revision, err = strconv.Atoi(number); err != nil || !found || r.Revision < 1 {
		return ConsumersReport{}, false
	}
	switch r.Health {
	case ConsumersHealthy, ConsumersPending, ConsumersUnhealthy:
		return r, true
	default:
		return ConsumersReport{}, false
	}
}
