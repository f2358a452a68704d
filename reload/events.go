package reload

import (
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/again"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/mark"
)

// maxNamed bounds the objects that a note names: the API server refuses notes
// of more than 1 KiB, and a name may have 253 characters.
const maxNamed = 2

// maxMissing is that bound for what is missing, where the name of a key is
// added to the object's, and where there is more to say.
const maxMissing = 1

// misspelt is the topic of tellMisspelt.
const misspelt = "misspelt"

// told remembers what owners were told, so that they hear it once, and again while
// it lasts. It is lost with the process, and with it no more than that an Event is
// repeated.
type told struct {
	now func() time.Time

	mu   sync.Mutex
	said again.Memory[topic]
}

type topic struct {
	key
	about string
}

// say reports whether text is to be said about this now, and whether it is news;
// empty is nothing to say.
func (t *told) say(k key, about, text string) (say, news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text == "" {
		t.said.Forget(topic{k, about})
		return false, false
	}
	return t.said.Say(topic{k, about}, text, t.now())
}

// over says that there is nothing to say about this any more.
func (t *told) over(k key, about string) { t.say(k, about, "") }

// forget drops what a consumer's owner was told.
func (t *told) forget(k key) {
	for _, about := range append(mark.WishAnnotations(), waiting, failing, reverted, templateless, stuck, misspelt) {
		t.over(k, about)
	}
}

func about(one consumer) kube.Event {
	form := one.form()
	return kube.Event{About: kube.Reference(form.GroupVersion().String(), form.Kind, one)}
}

func restarted(w consumer, decision Decision) kube.Event {
	event := about(w)
	event.Rule, event.Reason, event.Action = decision.Rule, "Restarted", "Restart"
	event.Note = "Restarted, because what it read at its start has changed: " + someOf(decision.Changed, maxNamed)
	switch {
	case w.key().kind == KindCronJob:
		event.Note = "Its pod template is stamped, because what its Jobs read at their start has changed: " + someOf(decision.Changed, maxMissing) +
			". Its next Job reads the new data. No Job is created for the change, unlike with Reloader: " +
			"if that cannot wait, run kubectl create job --from=cronjob/" + w.GetName() + " NAME"
	case w.form().Template == nil: // a target
		event.Reason, event.Action = "Annotated", "Annotate"
		event.Note = "Annotated with " + mark.RestartedFor + ", because what it uses has changed: " + someOf(decision.Changed, maxNamed)
	}
	return event
}

// mayReadOld says what new pods do not bring about for what was immutable. See
// https://github.com/kubernetes/kubernetes/issues/131589.
func mayReadOld(w consumer, rule string, old []string) kube.Event {
	event := about(w)
	event.Warning, event.Rule, event.Reason, event.Action = true, rule, "MayReadOldData", "Restart"
	event.Note = "Its new pods may still read the old data, since this was immutable and was made anew under its name: " +
		someOf(old, maxMissing) + ". A kubelet keeps such data until no pod of its node reads the object. " +
		"Have every pod of this namespace that reads it gone at once, Deployments by scaling to 0 and back; and make the object mutable, or give new data a new name"
	return event
}

// someOf names the first most of names, and counts the rest.
func someOf(names []string, most int) string {
	text := strings.Join(names[:min(most, len(names))], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// reloaded is about an object that changed.
func reloaded(one summary, about *corev1.ObjectReference) kube.Event {
	event := kube.Event{About: about, Rule: one.Rule, Reason: "Reloaded", Action: "Reload", Note: one.note}
	if one.Rule != "" {
		event.Note = fmt.Sprintf("rule %q: %s", one.Rule, one.note)
	}
	return event
}

// failed is about a write that the API server answered so.
func failed(to consumer, decision Decision, answer string) kube.Event {
	event := about(to)
	event.Warning, event.Persisting, event.Rule = true, true, decision.Rule
	switch decision.Step {
	case StepRestart:
		event.Reason, event.Action = "RestartFailed", "Restart"
		event.Note = "Not restarted, though what it reads has changed: " + someOf(decision.Changed, maxNamed)
	case StepRefresh, StepConfirm:
		event.Reason, event.Action = "RefreshFailed", "Refresh"
		event.Note = "Its volumes are not refreshed, though what they mount has changed: " + someOf(decision.Changed, maxNamed)
	default:
		event.Reason, event.Action = "AdoptFailed", "Adopt"
		event.Note = "What it runs could not be noted on it, without which it is not restarted for what changes next"
	}
	event.Note += ". The API server refuses it: " + someName(answer) +
		"; see which permission, policy or webhook does. Headwater's log has the whole answer, and it is tried again with growing pauses"
	return event
}

func restartHeld(w *Workload, decision Decision) kube.Event {
	event := about(w)
	event.Warning = true
	event.Rule, event.Reason, event.Action = decision.Rule, "RestartHeld", "Hold"
	event.Note = "Not restarted, because its pods could not start without what is missing: " + someOf(decision.Missing, maxMissing) +
		"; this goes on once it is there"
	return event
}

func baselineAdopted(w consumer, decision Decision) kube.Event {
	event := about(w)
	event.Reason, event.Action = "BaselineAdopted", "Adopt"
	event.Note = "Nothing was restarted: the annotation " + mark.Baseline + " cannot be compared with, since "
	if decision.Reason == ReasonOtherKey {
		event.Note += "the key it was made with is gone"
	} else {
		event.Note += "it was damaged or written by another version"
	}
	event.Note += "; the data of now was taken for the data it runs"
	return event
}

func unknownReload(w *Workload, fault fault) kube.Event {
	return ignoredAnnotation(about(w).About, fault)
}

func ignoredAnnotation(about *corev1.ObjectReference, fault fault) kube.Event {
	ignored := "ignored"
	if fault.inPart {
		ignored = "ignored in part"
	}
	return kube.Event{
		About: about, Warning: true, Persisting: true, Reason: "UnknownReload", Action: "Read",
		Note: fmt.Sprintf("The annotation %s is %s: %s", fault.annotation, ignored, fault.problem),
	}
}
