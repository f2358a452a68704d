package report

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/text"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// maxNamed limits the objects that a note names: the API server refuses notes above 1
// KiB, and a name may have 253 characters.
const maxNamed = 2

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
	event.Note = "Restarted, because data that it reads at its start changed: " + someOf(decision.Changed, maxNamed)
	switch {
	case w.Key().Kind == kinds.KindCronJob:
		event.Note = "Its pod template is stamped, because data that its Jobs read at their start changed: " + someOf(decision.Changed, maxMissing) +
			". Its next Job reads the new data. No Job is created for the change, unlike with Reloader: " +
			"if that cannot wait, run kubectl create job --from=cronjob/" + w.GetName() + " NAME"
	case w.Info().Template == nil: // a target
		event.Reason, event.Action = "Annotated", "Annotate"
		event.Note = "Annotated with " + mark.RestartedFor + ", because data that it uses changed: " + someOf(decision.Changed, maxNamed)
	}
	return event
}

// mayReadOld reports that new pods may read old data of an object that was immutable.
// See https://github.com/kubernetes/kubernetes/issues/131589.
func mayReadOld(w workload.Consumer, rule string, old []string) events.Event {
	event := about(w)
	event.Warning, event.Rule, event.Reason, event.Action = true, rule, "MayReadOldData", "Restart"
	event.Note = "Its new pods may still read the old data, because this object was immutable and was recreated under its name: " +
		someOf(old, maxMissing) + ". A kubelet caches such data until no pod on its node uses the object. " +
		"Delete all pods in this namespace that use it at once, Deployments by scaling to 0 and back. Then make the object mutable, or use a new name for new data"
	return event
}

// someOf joins at most most of names, and counts the rest.
func someOf(names []string, most int) string {
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

// failed reports a write that the API server refused with this answer.
func failed(to workload.Consumer, decision decide.Decision, answer string) events.Event {
	event := about(to)
	event.Warning, event.Persisting, event.Rule = true, true, decision.Rule
	switch decision.Step {
	case spec.StepRestart:
		event.Reason, event.Action = "RestartFailed", "Restart"
		event.Note = "Not restarted, although data that it reads changed: " + someOf(decision.Changed, maxNamed)
	case spec.StepRefresh, spec.StepConfirm:
		event.Reason, event.Action = "RefreshFailed", "Refresh"
		event.Note = "Its volumes were not refreshed, although data that they mount changed: " + someOf(decision.Changed, maxNamed)
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
	event.Warning = true
	event.Rule, event.Reason, event.Action = decision.Rule, "RestartHeld", "Hold"
	event.Note = "Not restarted, because its pods could not start without these missing objects or keys: " + someOf(decision.Missing, maxMissing) +
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
	return ignoredAnnotation(about(w).About, fault)
}

func ignoredAnnotation(about *corev1.ObjectReference, fault optin.Fault) events.Event {
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

func restartUndone(w *workload.Workload, due decide.Decision) events.Event {
	event := about(w)
	event.Warning, event.Persisting, event.Rule, event.Action = true, true, due.Rule, "Restart"
	event.Reason = "StampReverted"
	event.Note = "Somebody removed Headwater's annotations from it before its restart was complete"
	if due.Undone == decide.UndoneRolledBack {
		event.Reason = "RolledBack"
		event.Note = "Somebody rolled it back before its restart was complete"
	}
	event.Note += ": its pods may run old data of " + someOf(due.Changed, 1) +
		". Headwater restarts it again within the configured limits; to prevent that, set the annotation " + mark.Reload + ": \"Off\""
	return event
}

func stampReverted(w *workload.Workload, unsupported *workload.Owner) events.Event {
	event := about(w)
	event.Warning, event.Persisting = true, true
	event.Reason, event.Action = "StampReverted", "Restart"
	by := "the schema of its kind, which must keep annotations of the pod template"
	if w.Owner != nil {
		by = "its owner " + SomeName(w.Owner.String())
	}
	event.Note = "Headwater's annotations were removed from it, most likely by " + by +
		": some of its pods may run old data. Headwater retries at the next change"
	if unsupported != nil {
		event.Note += "; if a " + string(unsupported.Kind) + " holds the pod template, add that kind to reload.workloads in Headwater's configuration"
	}
	return event
}

// notRestarted reports a consumer of changed data that cannot be restarted.
func notRestarted(about corev1.ObjectReference, read []decide.Input) events.Event {
	return events.Event{
		About: &about, Warning: true, Rule: decide.FirstRule(read), Reason: "NotRestarted", Action: "Restart",
		Note: "Not restarted, although data that it reads at its start changed: " + someOf(decide.Names(read), maxNamed) + ". " + replaceIt(about),
	}
}

// replaceIt says how to make pods read the new data.
func replaceIt(about corev1.ObjectReference) string {
	switch kind := workload.KeyAbout(about).Kind; kind {
	case kinds.KindPod:
		return "It has no controller that would replace it: delete and recreate the Pod"
	case "Job.batch":
		return "The pod template of a Job cannot be changed: delete and recreate the Job if its pods need the new data"
	case "ReplicaSet.apps", "ReplicationController":
		return "A changed pod template replaces none of its pods: delete them, and it creates new ones"
	default:
		return "Headwater knows no pod template of a " + string(kind) + ": delete its pods, and it creates new ones; " +
			"or, if the kind holds a pod template, add it to reload.workloads in Headwater's configuration"
	}
}
