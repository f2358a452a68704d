package reload

import (
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// tellMisspelt reports the annotations of w with Headwater's prefix that mean
// nothing, if anybody would read the right ones.
func (r *Reporter) tellMisspelt(w *Workload, decision Decision) {
	var faults []fault
	if r.honoured().optIn() || decision.Rule != "" {
		faults = w.misspelt()
	}
	text := ""
	for _, fault := range faults {
		text += fault.annotation + fault.problem
	}
	if say, _ := r.told.say(w.key(), misspelt, text); say {
		for _, fault := range faults {
			r.events.Record(unknownReload(w, fault))
		}
	}
}

// complain tells the owner of w which of its annotations mean nothing, as
// far as anybody would heed them. Of what is wrong with one, the first counts.
func (r *Reporter) complain(w *Workload, decision Decision) {
	of, faults := wishesOf(&w.ObjectMeta, w.foreign, r.honoured())
	faults = slices.Concat(faults, (&gatherer{caches: r.caches}).tooMany(w.Namespace, of), w.unseen(of))
	problems := map[string]fault{}
	for _, fault := range faults {
		_, known := problems[fault.annotation]
		if !known && (r.honoured().optIn() || decision.Rule != "" || fault.annotation == mark.ReloadOn) {
			problems[fault.annotation] = fault
		}
	}
	for _, annotation := range mark.WishAnnotations() {
		if say, _ := r.told.say(w.key(), annotation, problems[annotation].problem); say {
			r.events.Record(unknownReload(w, problems[annotation]))
		}
	}
}

// tellBare tells the owner of w that it cannot be restarted, since it holds
// no pod template that Headwater knows of.
func (r *Reporter) tellBare(w *Workload) {
	if !w.Bare {
		return
	}
	event := about(w)
	event.Action, event.Persisting = "Read", true
	switch {
	case w.Borrows == nil:
		event.Reason = "NoPodTemplate"
		event.Note = "It is never restarted, since it holds no pod template at " + strings.Join(w.form().Template, ".")
	case r.strange(w.Borrows.kind):
		event.Reason = "TemplateElsewhere"
		event.Note = "It is never restarted, since its pod template is that of a " + string(w.Borrows.kind) +
			"; add that kind to reload.workloads in Headwater's configuration"
	}
	if say, _ := r.told.say(w.key(), templateless, event.Note); say {
		r.events.Record(event)
	}
}

func (r *Reporter) strange(kind Kind) bool {
	_, sight := r.consumers.look("", Owner{Kind: kind})
	return sight == SightStrange
}
