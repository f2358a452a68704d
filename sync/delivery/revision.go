package delivery

import (
	"slices"
	"strconv"
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// Verdict is how far the delivery of a revision came.
type Verdict string

// The values of Verdict.
const (
	// Delivering: it is on its way, stage by stage.
	Delivering Verdict = "Delivering"
	// Held: its gate did not hold, and it waits for somebody where it is.
	Held Verdict = "Held"
	// Delivered: it passed every stage.
	Delivered Verdict = "Delivered"
	// Rejected: its gate did not hold, or its content is not valid.
	Rejected Verdict = "Rejected"
	// Superseded: the source was edited before it was delivered.
	Superseded Verdict = "Superseded"
)

// Verdicts returns every verdict.
func Verdicts() []string {
	return []string{string(Delivering), string(Held), string(Delivered), string(Rejected), string(Superseded)}
}

// Revision is one recorded content of a source for one rule. The content never
// changes; what is known of its delivery does.
type Revision struct {
	// Number counts the revisions of a rule's source from 1.
	Number  int
	Rule    string
	Source  object.Ref
	Verdict Verdict
	// Reason is why, for people; it contains only names.
	Reason string
	// Stage is the name of the stage that Delivering or Held has reached;
	// StageSince is since when.
	Stage      string
	StageSince time.Time
	// HealthySince is since when the stage's gate holds; zero if it does not.
	HealthySince time.Time
	// Paused, Pinned and Approved name who asked for it and when; empty if nobody.
	// Approved lets the delivery go on from Stage.
	Paused, Pinned, Approved string
	// PinnedOver is the number of the revision that the source had when somebody
	// rolled back to r.
	PinnedOver int
	// ConsumersKnown is up to which resourceVersion the consumers of clones are known;
	// see mark.ConsumersKnown.
	ConsumersKnown string
	// EditedBy is the field manager that last edited the source.
	EditedBy string
	// Recorded is when it was recorded.
	Recorded time.Time

	// Content is shared with a cache; Digests are those of its values.
	Content object.Content
	Digests object.Digests
}

// sameContent reports whether the revision is of this content.
func (r *Revision) sameContent(content object.Content, digests object.Digests) bool {
	return r.Content.Type == content.Type && r.Content.Immutable == content.Immutable && slices.Equal(r.Digests, digests)
}

// UnderWay reports whether the revision is the candidate: on its way, or held.
func (r *Revision) UnderWay() bool { return r.Verdict == Delivering || r.Verdict == Held }

// Parse reads the revision that an object records; ok is false for any other
// object.
func Parse(recorded *object.Full) (r *Revision, ok bool) {
	annotations := recorded.Annotations
	number, err := strconv.Atoi(recorded.Labels[mark.Revision])
	if err != nil || number < 1 {
		return nil, false
	}
	source, err := object.ParseRef(annotations[mark.Source])
	if err != nil || annotations[mark.Rule] == "" {
		return nil, false
	}
	over, _ := strconv.Atoi(annotations[mark.PinnedOver])
	content := recorded.Content
	content.Immutable = annotations[mark.SourceImmutable] == "true"
	return &Revision{
		Number: number, Rule: annotations[mark.Rule], Source: source,
		Verdict: Verdict(annotations[mark.Verdict]), Reason: annotations[mark.Reason],
		Stage: annotations[mark.Stage], StageSince: mark.ParseTime(annotations[mark.StageSince]),
		HealthySince: mark.ParseTime(annotations[mark.HealthySince]),
		Paused:       annotations[mark.Paused], Pinned: annotations[mark.Pinned], Approved: annotations[mark.Approved], PinnedOver: over,
		ConsumersKnown: annotations[mark.ConsumersKnown], EditedBy: annotations[mark.EditedBy], Recorded: recorded.CreationTimestamp.Time,
		Content: content, Digests: recorded.Digests,
	}, true
}

// Annotations returns what the object that records r says of its delivery. An
// empty value takes the annotation off.
func (r *Revision) Annotations() map[string]string {
	return map[string]string{
		mark.Verdict: string(r.Verdict), mark.Reason: r.Reason,
		mark.Stage: r.Stage, mark.StageSince: formatTime(r.StageSince), mark.HealthySince: formatTime(r.HealthySince),
		mark.Paused: r.Paused, mark.Pinned: r.Pinned, mark.PinnedOver: formatNumber(r.PinnedOver), mark.Approved: r.Approved,
	}
}

func formatTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return mark.FormatTime(at)
}

func formatNumber(number int) string {
	if number == 0 {
		return ""
	}
	return strconv.Itoa(number)
}
