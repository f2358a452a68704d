package report

import (
	"slices"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/gather"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// ReportDecision reports a decision about a workload: what its owner asks for without
// effect, what somebody reverted, why its restart waits, and what was written, or the error
// of the write. changed is true if it did not wait for that reason before.
func (r *Reporter) ReportDecision(s *decide.State, d decide.Decision, changed bool, err error) {
	k := s.Workload.Key()
	if changed && d.Waits() {
		r.Count(d.Causes, k, outcomeWaits)
		if d.Wait.Reason == decide.WaitBreaker {
			r.Metrics.breaker.WithLabelValues(d.Rule).Inc()
		}
	}
	for _, one := range append(r.faults(s.Workload, d), r.notes(s, d)...) {
		r.tell(one, k, d)
	}
	if now, writes := d.Now(); writes {
		r.Written(s.Workload, now, err)
	}
}

// tell reports one note, if it is new.
func (r *Reporter) tell(one note, k kinds.Key, d decide.Decision) {
	said, news := r.EmitOnce(k, one.topic, one.text, one.events...)
	if news && one.topic == topicReverted {
		r.Metrics.reverted.WithLabelValues(string(k.Kind)).Inc()
	}
	if news && one.topic == topicWaiting && d.Step == spec.StepHold {
		r.Metrics.record(d, resultHeld)
	}
	if said && one.log != "" {
		r.logNote(one, k, d)
	}
}

// note is the report on one topic, which is repeated while it lasts. An empty text ends the
// topic.
type note struct {
	topic, text string
	events      []events.Event
	// log is the line that goes with it; empty for none.
	log string
}

func (r *Reporter) logNote(one note, k kinds.Key, d decide.Decision) {
	level := zapcore.InfoLevel
	if one.events[0].Warning {
		level = zapcore.WarnLevel
	}
	r.Log.Log(level, one.log, zap.Stringer("consumer", k), zap.String("rule", d.Rule), zap.String("how", string(d.Undone)),
		zap.String("reason", string(d.Wait.Reason)), zap.Strings("missing", d.Missing), zap.Time("until", d.Wait.Until))
}

// faults returns the annotations of w that are invalid or misspelt, if correct ones would
// have an effect. Of several problems of one annotation the first counts.
func (r *Reporter) faults(w *workload.Workload, d decide.Decision) []note {
	settings := r.Settings.Load().Settings
	counts := settings.OptsIn() || d.Rule != ""
	of, faults := optin.ReadPreferences(&w.ObjectMeta, w.ThirdParty, settings)
	faults = slices.Concat(faults, (&gather.Gatherer{Caches: r.Caches}).TooMany(w.Namespace, of), w.Unseen(of))
	var notes []note
	for _, annotation := range mark.WishAnnotations() {
		one := note{topic: annotation}
		i := slices.IndexFunc(faults, func(fault optin.Fault) bool { return fault.Annotation == annotation })
		if i >= 0 && (counts || annotation == mark.ReloadOn) {
			one.text, one.events = faults[i].Problem, []events.Event{unknownReload(w, faults[i])}
		}
		notes = append(notes, one)
	}
	misspelt := note{topic: topicMisspelt}
	if counts {
		for _, fault := range w.Misspelt {
			misspelt.text += fault.Annotation + fault.Problem
			misspelt.events = append(misspelt.events, unknownReload(w, fault))
		}
	}
	return append(notes, misspelt)
}

// notes returns what somebody reverted, why the workload cannot be restarted, and why it
// waits.
func (r *Reporter) notes(s *decide.State, d decide.Decision) []note {
	w, notes := s.Workload, []note{}
	reverted := note{topic: topicReverted, text: s.Reverted(d), log: "a restart was reverted"}
	if reverted.text != "" {
		reverted.events = []events.Event{restartReverted(s, d)}
	}
	notes = append(notes, reverted)
	if w.NoTemplate {
		event := r.noTemplate(w)
		notes = append(notes, note{topic: TopicNoTemplate, text: event.Note, events: []events.Event{event}})
	}
	switch {
	case !d.Waits(), d.Wait.Reason == decide.WaitReverted:
		notes = append(notes, note{topic: topicWaiting})
	case !d.Settling:
		event := restartWaits(w, d)
		notes = append(notes, note{topicWaiting, event.Note, []events.Event{event}, "restart waits"})
	}
	return notes
}

// noTemplate reports that w has no pod template that Headwater can stamp. The Event is empty
// if its template is in an object of a supported kind.
func (r *Reporter) noTemplate(w *workload.Workload) events.Event {
	event := about(w)
	event.Action, event.Persisting = "Read", true
	if w.TemplateFrom == nil {
		event.Reason = "NoPodTemplate"
		event.Note = "It cannot be restarted, because it has no pod template at " + strings.Join(w.Info().Template, ".")
	} else if _, lookup := r.Consumers.Lookup("", workload.Owner{Kind: w.TemplateFrom.Kind}); lookup == workload.OwnerUnsupported {
		event.Reason = "TemplateElsewhere"
		event.Note = "It cannot be restarted, because its pod template is in a " + string(w.TemplateFrom.Kind) +
			"; add that kind to reload.workloads in Headwater's configuration"
	}
	return event
}
