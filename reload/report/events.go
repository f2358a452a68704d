package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube/admission"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/text"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// MaxNamed limits the objects that a note names: the API server refuses notes above 1
// KiB, and a name may have 253 characters.
const MaxNamed = 2

// longestNote is the limit for a note that names more than objects.
const longestNote = 1000

// maxMissing is the limit for longer notes, and for missing keys, which are named with
// their object.
const maxMissing = 1

func about(one workload.Consumer) events.Event {
	info := one.Info()
	return events.Event{About: events.Reference(info.GroupVersion().String(), info.Kind, one)}
}

func restarted(w workload.Consumer, decision decide.Decision) events.Event {
	event := about(w)
	event.Rule, event.Reason, event.Action = decision.Rule, "Restarted", "Restart"
	event.Note = "Restarted, because data that it reads at its start changed: " + SomeOf(decision.Changed, MaxNamed)
	switch {
	case w.Info().RunsToCompletion:
		event.Note = "Its pod template is stamped, because data that its Jobs read at their start changed: " + SomeOf(decision.Changed, maxMissing) +
			". Its next Job reads the new data. No Job is created for the change, unlike with Reloader: " +
			"if that cannot wait, run kubectl create job --from=cronjob/" + w.GetName() + " NAME"
	case w.Info().StampAt() == nil: // a target
		event.Reason, event.Action = "Annotated", "Annotate"
		event.Note = "Annotated with " + mark.RestartedFor + ", because data that it uses changed: " + SomeOf(decision.Changed, MaxNamed)
	}
	return event
}

// mayReadOld reports that new pods may read old data of an object that was immutable.
// See https://github.com/kubernetes/kubernetes/issues/131589.
func mayReadOld(w workload.Consumer, rule string, old []string) events.Event {
	event := about(w)
	event.Warning, event.Rule, event.Reason, event.Action = true, rule, "MayReadOldData", "Restart"
	event.Note = "Its new pods may still read the old data, because this object was immutable and was recreated under its name: " +
		SomeOf(old, maxMissing) + ". A kubelet caches such data until no pod on its node uses the object. " +
		"Delete all pods in this namespace that use it at once, Deployments by scaling to 0 and back. Then make the object mutable, or use a new name for new data"
	return event
}

// SomeOf joins at most most of names, and counts the rest.
func SomeOf(names []string, most int) string {
	text := strings.Join(names[:min(most, len(names))], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// reloaded is the summary on an object that changed.
func reloaded(one summary, about *corev1.ObjectReference) events.Event {
	event := events.Event{About: about, Rule: one.Rule, Reason: "Reloaded", Action: "Reload", Note: one.note}
	if one.Rule != "" {
		event.Note = fmt.Sprintf("rule %q: %s", one.Rule, one.note)
	}
	return event
}

// AdmissionError says that admission changed what the API server stores of a patch.
type AdmissionError struct {
	// Annotation is the first one that is not as the patch says.
	Annotation string
}

// Error implements error.
func (e AdmissionError) Error() string {
	return "the API server stores annotation " + e.Annotation + " otherwise than Headwater writes it, so a mutating policy or webhook changes it"
}

// changedByAdmission turns event, which failed returned, into one about admission.
func changedByAdmission(event events.Event, by AdmissionError) events.Event {
	event.Reason = "AdmissionChanges"
	event.Note = "What Headwater does to it has no effect: " + by.Error() + ". The API server does not say which one; retrying with backoff"
	return event
}

// failed reports a write that the API server refused with this answer.
func failed(to workload.Consumer, decision decide.Decision, answer string) events.Event {
	event := about(to)
	event.Warning, event.Persisting, event.Rule = true, true, decision.Rule
	switch decision.Step {
	case spec.StepRestart:
		event.Reason, event.Action = "RestartFailed", "Restart"
		event.Note = "Not restarted, although data that it reads changed: " + SomeOf(decision.Changed, MaxNamed)
	case spec.StepRefresh, spec.StepConfirm:
		event.Reason, event.Action = "RefreshFailed", "Refresh"
		event.Note = "Its volumes were not refreshed, although data that they mount changed: " + SomeOf(decision.Changed, MaxNamed)
	default:
		event.Reason, event.Action = "AdoptFailed", "Adopt"
		event.Note = "Its baseline could not be written, so the next change will not restart it"
	}
	event.Note += ". The API server refused the patch: " + SomeName(answer) +
		"; check RBAC, policies and webhooks. Headwater's log has the full answer; retrying with backoff"
	return event
}

func restartHeld(w *workload.Workload, decision decide.Decision) events.Event {
	event := about(w)
	event.Warning, event.Persisting = true, true
	event.Rule, event.Reason, event.Action = decision.Rule, "RestartHeld", "Hold"
	if decision.Reason == spec.ReasonEmptied {
		event.Note = "Not restarted, because its pods would read nothing of what changed; gone or empty: " + SomeOf(decision.Missing, maxMissing) +
			"; the restart continues when there is a value. If that is intended, restart it yourself"
		return event
	}
	event.Note = "Not restarted, because its pods could not start without these missing objects or keys: " + SomeOf(decision.Missing, maxMissing) +
		"; the restart continues when they exist"
	return event
}

func baselineAdopted(w workload.Consumer, decision decide.Decision) events.Event {
	event := about(w)
	event.Reason, event.Action = "BaselineAdopted", "Adopt"
	event.Note = "Nothing was restarted: the annotation " + mark.Baseline + " cannot be compared, because "
	if decision.Reason == spec.ReasonOtherKey {
		event.Note += "the key it was made with is gone"
	} else {
		event.Note += "it was damaged or written by another version"
	}
	event.Note += "; the current data was recorded as what it runs"
	return event
}

func unknownReload(w *workload.Workload, fault optin.Fault) events.Event {
	return IgnoredAnnotation(about(w).About, fault)
}

// IgnoredAnnotation reports an annotation that has no effect, in whole or in part.
func IgnoredAnnotation(about *corev1.ObjectReference, fault optin.Fault) events.Event {
	ignored := "ignored"
	if fault.InPart {
		ignored = "ignored in part"
	}
	return events.Event{
		About: about, Warning: true, Persisting: true, Reason: "UnknownReload", Action: "Read",
		Note: fmt.Sprintf("The annotation %s is %s: %s", fault.Annotation, ignored, fault.Problem),
	}
}

// SomeName truncates a name to fit into an Event.
func SomeName(name string) string {
	const most = 300
	return text.Truncate(name, most)
}

// restartReverted reports how somebody reverted a restart.
func restartReverted(s *decide.State, d decide.Decision) events.Event {
	w := s.Workload
	event := about(w)
	event.Warning, event.Persisting, event.Rule, event.Action, event.Reason = true, true, d.Rule, "Restart", "StampReverted"
	if by := decide.RevertedBy(s); d.Undone == "" || d.Undone == decide.UndoneByOwner {
		event.Reason, event.Note = "RestartReverted", text.Truncate("Some of its pods may run old data: "+by.String(), longestNote)
		return event
	}
	if s.Known.AsWritten {
		return changedByAdmission(event, AdmissionError{Annotation: mark.RestartedFor})
	}
	event.Note = "Somebody removed Headwater's annotations from it before its restart was complete"
	if d.Undone == decide.UndoneRolledBack {
		event.Reason = "RolledBack"
		event.Note = "Somebody rolled it back before its restart was complete"
	}
	event.Note += ": its pods may run old data of " + SomeOf(d.Changed, 1) +
		". Headwater restarts it again within the configured limits; to prevent that, set the annotation " + mark.Reload + ": \"Off\""
	return event
}

func restartWaits(w *workload.Workload, due decide.Decision) events.Event {
	if due.Wait.Reason == decide.WaitMissing {
		return restartHeld(w, due)
	}
	event := about(w)
	event.Persisting, event.Warning = true, due.Wait.Reason == decide.WaitBreaker
	event.Rule = due.Rule
	event.Reason, event.Action, event.Note = "RestartWaits", "Wait", waitNote(due)
	return event
}

// waitNote describes for users what a restart waits for.
func waitNote(due decide.Decision) string {
	at := due.Wait.Until.UTC().Format(time.RFC3339)
	var why string
	switch due.Wait.Reason {
	case decide.WaitDebounce:
		why = "until " + at + ", when its debounce ends, for changes that may follow"
	case decide.WaitOwner:
		why = fmt.Sprintf("until %s at most, because a rollout in progress may deliver the change to every pod", at)
	case decide.WaitWindow:
		why = "until " + at + ", when its windows are open next"
	case decide.WaitBreaker:
		why = fmt.Sprintf("until %s, because it was restarted %d times within an hour: change its data less often, "+
			"or raise maxRestartsPerHour of the rule", at, due.Pace.PerHour)
	case decide.WaitInterval:
		why = "until " + at + ", the least time after its last restart"
	case decide.WaitMissing: // see restartHeld
	case decide.WaitReverted: // see restartReverted
	case decide.WaitRollouts:
		why = "until other restarted workloads are rolled out; the limit is reload.maxConcurrentRollouts"
	}
	return "Restart postponed: " + SomeOf(due.Changed, 1) + " changed; waiting " + why
}

// Overtaken reports whether somebody else wrote, replaced or deleted the consumer at
// the same time. Webhooks may refuse with the same codes, which does not count.
func Overtaken(err error) bool {
	return (apierrors.IsNotFound(err) || apierrors.IsConflict(err) || uidRefused(err)) && !admission.Refused(err)
}

// uidRefused reports whether another object has taken the name of the patched one. To
// the API server, the patch looks like a change of the UID.
func uidRefused(err error) bool {
	var refusal apierrors.APIStatus
	if !errors.As(err, &refusal) || refusal.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(refusal.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Field == "metadata.uid"
	})
}

// refusal returns the API server's answer if it, a policy or a webhook refuses a write,
// or if a webhook could not be called. Other errors are temporary.
func refusal(err error) (answer string, refused bool) {
	answer, code := AnswerIn(err)
	return answer, code/100 == 4 && !apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err)
}

// AnswerIn returns the reason, the code and the fields of an API server's answer. It
// omits the message, because the API server or a webhook may quote the refused value in
// it. For any other error the code is 0.
func AnswerIn(err error) (answer string, code int32) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "", 0
	}
	is := status.Status()
	words := []string{string(is.Reason), fmt.Sprintf("(%d)", is.Code)}
	if is.Details != nil {
		for _, cause := range is.Details.Causes {
			words = append(words, cause.Field)
		}
	}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " "), is.Code
}
