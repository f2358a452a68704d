package report

import (
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/gather"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// EmitMisspelt reports the annotations of w with Headwater's prefix and an unknown
// name, if the correct ones would have an effect.
func (r *Reporter) EmitMisspelt(w *workload.Workload, decision decide.Decision) {
	var faults []optin.Fault
	if r.currentSettings().OptsIn() || decision.Rule != "" {
		faults = w.Misspelt()
	}
	text := ""
	for _, fault := range faults {
		text += fault.Annotation + fault.Problem
	}
	if say, _ := r.Repeats.ShouldEmit(w.Key(), topicMisspelt, text); say {
		for _, fault := range faults {
			r.events.Record(unknownReload(w, fault))
		}
	}
}

// EmitIgnoredAnnotations reports the annotations of w that are invalid, if valid ones
// would have an effect. Of several problems of one annotation it reports the first.
func (r *Reporter) EmitIgnoredAnnotations(w *workload.Workload, decision decide.Decision) {
	of, faults := optin.ReadPreferences(&w.ObjectMeta, w.ThirdParty, r.currentSettings())
	faults = slices.Concat(faults, (&gather.Gatherer{Caches: r.caches}).TooMany(w.Namespace, of), w.Unseen(of))
	problems := map[string]optin.Fault{}
	for _, fault := range faults {
		_, known := problems[fault.Annotation]
		if !known && (r.currentSettings().OptsIn() || decision.Rule != "" || fault.Annotation == mark.ReloadOn) {
			problems[fault.Annotation] = fault
		}
	}
	for _, annotation := range mark.WishAnnotations() {
		if say, _ := r.Repeats.ShouldEmit(w.Key(), annotation, problems[annotation].Problem); say {
			r.events.Record(unknownReload(w, problems[annotation]))
		}
	}
}

// EmitNoTemplate reports that w cannot be restarted, because it has no pod template
// that Headwater can stamp.
func (r *Reporter) EmitNoTemplate(w *workload.Workload) {
	if !w.NoTemplate {
		return
	}
	event := about(w)
	event.Action, event.Persisting = "Read", true
	switch {
	case w.TemplateFrom == nil:
		event.Reason = "NoPodTemplate"
		event.Note = "It cannot be restarted, because it has no pod template at " + strings.Join(w.Info().Template, ".")
	case r.unsupported(w.TemplateFrom.Kind):
		event.Reason = "TemplateElsewhere"
		event.Note = "It cannot be restarted, because its pod template is in a " + string(w.TemplateFrom.Kind) +
			"; add that kind to reload.workloads in Headwater's configuration"
	}
	if say, _ := r.Repeats.ShouldEmit(w.Key(), topicNoTemplate, event.Note); say {
		r.events.Record(event)
	}
}

func (r *Reporter) unsupported(kind kinds.Kind) bool {
	_, lookup := r.consumers.Lookup("", workload.Owner{Kind: kind})
	return lookup == workload.OwnerUnsupported
}
