package revisions

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/stages"
)

// protocol is the value of mark.Protocol.
const protocol = "evidence"

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
	// Stage is the name of the stage that Delivering or Held has reached, empty if it is in
	// none yet; StageSince is since when.
	Stage      string
	StageSince time.Time
	// Passed are the names of the stages that it passed.
	Passed []string
	// Soaked is how long the gate of Stage was seen to hold, Waited how long it was seen
	// to wait for consumers, and Lacked for evidence alone.
	Soaked, Waited, Lacked time.Duration
	// Paused, Pinned and Approved name who asked for it and when; empty if nobody.
	// Approved lets the delivery go on from Stage.
	Paused, Pinned, Approved string
	// PinnedOver is the number of the revision that the source had when somebody
	// rolled back to r.
	PinnedOver int
	// Unproven names the stages that need no evidence, each with who said so and when.
	Unproven map[string]string
	// AllAtOnceValue is the annotation mark.Delivery that the source had. AllAtOnce is
	// true if the revision skips the stages for it.
	AllAtOnceValue string
	AllAtOnce      bool
	// Emptied identifies what the source lacked, for which the revision was held, or which was
	// approved; empty if it lacked nothing.
	Emptied string
	// HeldUntil is when it is delivered, if it was held because its content was not valid
	// yet; else zero.
	HeldUntil time.Time
	// Legacy is true for a revision that a version without evidence recorded.
	Legacy bool
	// ChangedKeys are the keys of the clones that differ from the stable revision; nil
	// if the whole object counts as changed.
	ChangedKeys []string
	// Evidence is what reload has seen of its readers. EvidenceUnread is why what is
	// stored cannot be read; nothing goes on by it.
	Evidence       Evidence
	EvidenceUnread error
	// EditedBy is the field manager that last edited the source.
	EditedBy string
	// Recorded is when it was recorded.
	Recorded time.Time

	// Content is shared with a cache; Digests are those of its values.
	Content object.Content
	Digests object.Digests
}

// SameContent reports whether the revision is of this content.
func (r *Revision) SameContent(content object.Content, digests object.Digests) bool {
	return r.Content.Type == content.Type && r.Content.Immutable == content.Immutable && slices.Equal(r.Digests, digests)
}

// UnderWay reports whether the revision is the candidate: on its way, or held.
func (r *Revision) UnderWay() bool { return r.Verdict == Delivering || r.Verdict == Held }

// EndsByItself reports whether r was held before it came to any stage, until its time comes or
// what its source lacks is approved.
func (r *Revision) EndsByItself() bool {
	return r.Verdict == Held && r.Stage == "" && (r.Emptied != "" || !r.HeldUntil.IsZero())
}

// HasPassed reports whether r passed a stage of in. An earlier version recorded only the
// stage that r had reached.
func (r *Revision) HasPassed(in *stages.Stages, stage int) bool {
	if r.Legacy && len(r.Passed) == 0 {
		return stage < in.Index(r.Stage)
	}
	return slices.Contains(r.Passed, in.Name(stage))
}

// HasReached reports whether r, which is under way, passed a stage of in or is in it.
func (r *Revision) HasReached(in *stages.Stages, stage int) bool {
	return r.Stage != "" && (r.AllAtOnce || in.Name(stage) == r.Stage || r.HasPassed(in, stage))
}

// Excused returns why the record of r excuses a consumer; empty if it does not, or r is nil.
func (r *Revision) Excused(consumer string) Condition {
	if r == nil {
		return ""
	}
	return r.Evidence.Before[consumer]
}

// Parse reads the revision that an object records; ok is false for any other object. Its
// number is that of its name, since anybody who may edit it can change the label.
func Parse(recorded *object.Full) (r *Revision, ok bool) {
	annotations := recorded.Annotations
	number, err := strconv.Atoi(recorded.Name[strings.LastIndexByte(recorded.Name, '-')+1:])
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
	evidence, unread := ParseEvidence(annotations[mark.Evidence])
	return &Revision{
		ChangedKeys: parseJSON[[]string](annotations[mark.ChangedKeys]), Evidence: evidence, EvidenceUnread: unread,
		Number: number, Rule: annotations[mark.Rule], Source: source,
		Verdict: Verdict(annotations[mark.Verdict]), Reason: annotations[mark.Reason],
		Stage: annotations[mark.Stage], StageSince: mark.ParseTime(annotations[mark.StageSince]),
		Passed: parseJSON[[]string](annotations[mark.Passed]),
		Soaked: parseDuration(annotations[mark.Soaked]), Waited: parseDuration(annotations[mark.Waited]), Lacked: parseDuration(annotations[mark.Lacked]),
		Unproven: parseJSON[map[string]string](annotations[mark.Unproven]), AllAtOnceValue: annotations[mark.AllAtOnceValue], AllAtOnce: annotations[mark.SkipsStages] == "true",
		Legacy: annotations[mark.Protocol] != protocol, Emptied: annotations[mark.Emptied], HeldUntil: mark.ParseTime(annotations[mark.HeldUntil]),
		Paused: annotations[mark.Paused], Pinned: annotations[mark.Pinned], Approved: annotations[mark.Approved], PinnedOver: over,
		EditedBy: annotations[mark.EditedBy], Recorded: recorded.CreationTimestamp.Time,
		Content: content, Digests: recorded.Digests,
	}, true
}

// Annotations returns what the object that records r says of its delivery. An
// empty value takes the annotation off.
func (r *Revision) Annotations() map[string]string {
	return map[string]string{
		mark.Verdict: string(r.Verdict), mark.Reason: r.Reason,
		mark.Stage: r.Stage, mark.StageSince: formatTime(r.StageSince), mark.Passed: formatJSON(r.Passed, len(r.Passed)),
		mark.Soaked: formatDuration(r.Soaked), mark.Waited: formatDuration(r.Waited), mark.Lacked: formatDuration(r.Lacked),
		mark.SkipsStages: formatBool(r.AllAtOnce), mark.Emptied: r.Emptied, mark.HeldUntil: formatTime(r.HeldUntil), mark.Unproven: formatJSON(r.Unproven, len(r.Unproven)),
		mark.Paused: r.Paused, mark.Pinned: r.Pinned, mark.PinnedOver: formatNumber(r.PinnedOver), mark.Approved: r.Approved,
	}
}

func formatTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return mark.FormatTime(at)
}

// parseJSON returns zero for what is not such a value: changed keys then count as the
// whole object, and nothing as passed or waived.
func parseJSON[T any](text string) (value T) {
	var read T
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		return value
	}
	return read
}

// formatJSON returns value, which has that many elements, as JSON; empty if it has none.
func formatJSON(value any, elements int) string {
	if elements == 0 {
		return ""
	}
	text, err := json.Marshal(value)
	if err != nil { // lists and maps of strings
		return ""
	}
	return string(text)
}

// parseDuration returns 0 for what is not a duration: less time was observed then.
func parseDuration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0
	}
	return d
}

// formatDuration rounds down: a sum that was stored higher than it is would be stored again
// and again.
func formatDuration(d time.Duration) string {
	if d = d.Truncate(time.Millisecond); d == 0 {
		return ""
	}
	return d.String()
}

func formatBool(is bool) string {
	if !is {
		return ""
	}
	return "true"
}

func formatNumber(number int) string {
	if number == 0 {
		return ""
	}
	return strconv.Itoa(number)
}

// Settled returns r at the end of its delivery.
func (r *Revision) Settled(verdict Verdict, reason string) Revision {
	settled := *r
	settled.Verdict, settled.Reason = verdict, reason
	settled.Stage, settled.StageSince, settled.Passed, settled.Unproven = "", time.Time{}, nil, nil
	settled.Soaked, settled.Waited, settled.Lacked = 0, 0, 0
	settled.Paused, settled.Approved = "", ""
	return settled
}

// Unpinned returns r after the end of a rollback to it.
func (r *Revision) Unpinned() Revision {
	next := *r
	next.Pinned, next.PinnedOver = "", 0
	return next
}

// Enter lets the time of stage count from now.
func (r *Revision) Enter(stage string, now time.Time) {
	r.Stage, r.StageSince, r.Reason, r.Approved = stage, now, "", ""
	r.Soaked, r.Waited, r.Lacked = 0, 0, 0
}
