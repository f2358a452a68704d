package reload

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/mark"
)

// maxNamed bounds the objects that a note names: the API server refuses notes
// of more than 1 KiB, and a name may have 253 characters.
const maxNamed = 2

// tell records an Event about what was done to w, if its owner should know.
func (c *controller) tell(w *Workload, decision Decision) {
	switch {
	case decision.Step == StepRestart:
		c.events.Record(restarted(w, decision))
	case decision.lostBaseline():
		c.events.Record(baselineAdopted(w, decision))
	}
}

// complain tells the owner of w once that its annotation means nothing.
func (c *controller) complain(w *Workload, own wishes, consumed []Consumed) {
	_, readable := own.action(None)
	if readable {
		c.complained.Delete(w.key())
		return
	}
	if firstRule(consumed) == "" {
		return
	}
	if told, again := c.complained.Swap(w.key(), own.reload); !again || told != own.reload {
		c.events.Record(unknownReload(w, own.reload))
	}
}

func about(w *Workload) kube.Event {
	return kube.Event{About: kube.Reference(appsv1.SchemeGroupVersion.String(), string(w.Kind), w)}
}

func restarted(w *Workload, decision Decision) kube.Event {
	event := about(w)
	event.Reason, event.Action = "Restarted", "Restart"
	named := decision.Changed[:min(maxNamed, len(decision.Changed))]
	event.Note = "Restarted, because what it read at its start has changed: " + strings.Join(named, ", ")
	if more := len(decision.Changed) - len(named); more > 0 {
		event.Note += fmt.Sprintf(" and %d more", more)
	}
	return event
}

func baselineAdopted(w *Workload, decision Decision) kube.Event {
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

func unknownReload(w *Workload, value string) kube.Event {
	event := about(w)
	event.Warning = true
	event.Reason, event.Action = "UnknownReload", "Read"
	event.Note = fmt.Sprintf("The annotation %s is %.40q, and is ignored: use Auto, Restart, Refresh or Off", mark.Reload, value)
	return event
}
