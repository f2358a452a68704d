package reload

import (
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/cut"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/mark"
)

// byOwner is the index from the UID of a controller to what it controls.
const byOwner = "owner"

func ownerValues(w *Workload) []string {
	if w.Owner == nil {
		return nil
	}
	return []string{string(w.Owner.UID)}
}

// topOf walks up from w, see the function of that name.
func (c *consumers) topOf(w *Workload) topmost {
	return topOf(w, func(owner Owner) (*Workload, Sight) { return c.look(w.Namespace, owner) })
}

func (c *consumers) look(namespace string, owner Owner) (*Workload, Sight) {
	if _, every := c.workloads[owner.Kind]; !every {
		switch c.optional.Standing(owner.Kind.groupKind()) {
		case kube.StandingAbsent, kube.StandingRefused:
			return nil, SightStrange
		case kube.StandingFilling:
			return nil, SightUnread
		case kube.StandingFull:
		}
	}
	if found, ok := c.workload(key{owner.Kind, namespace, owner.Name}); ok {
		return found, SightFound
	}
	return nil, SightGone
}

// controlled returns what w controls.
func (c *consumers) controlled(w *Workload) []*Workload {
	if w.UID == "" {
		return nil
	}
	return c.byIndex(byOwner, string(w.UID))
}

// family is top and every workload that it is stamped for.
func (c *consumers) family(top *Workload) []*Workload {
	all := []*Workload{top}
	if !top.templated() {
		return all
	}
	for at := 0; at < len(all); at++ {
		for _, w := range c.controlled(all[at]) {
			is, again := c.topOf(w).top, slices.ContainsFunc(all, func(one *Workload) bool { return one.key() == w.key() })
			if !again && is.key() == top.key() && is.UID == top.UID {
				all = append(all, w)
			}
		}
	}
	return all
}

// concerns are the workloads to look at when w changed: itself, and the one
// that is stamped for it.
func (c *consumers) concerns(w *Workload) []key {
	keys := []key{w.key()}
	if top := c.topOf(w).top; top != w {
		keys = append(keys, top.key())
	}
	return keys
}

// recollections are the marks that were written on workloads with a controller.
// It may take them off again as often as they are written, so what was written
// counts, and not what is there. They are lost with the process, and with them
// no more than what becomes a first sight.
type recollections struct{ written sync.Map }

type recollection struct {
	uid      types.UID
	baseline string
	restarts mark.Restarts
}

func (r *recollections) keep(w *Workload, baseline string, restarts mark.Restarts) {
	if w.Owner != nil {
		r.written.Store(w.key(), recollection{w.UID, baseline, restarts})
	}
}

// of returns what was written on w, if anything was.
func (r *recollections) of(w *Workload) (last recollection, found bool) {
	value, _ := r.written.Load(w.key())
	last, found = value.(recollection)
	return last, found && w.Owner != nil && last.uid == w.UID
}

func (r *recollections) forget(k key) { r.written.Delete(k) }

// baseline is the data that w is known to run.
func (c *controller) baseline(w *Workload) string {
	if written, found := c.recollections.of(w); found {
		return written.baseline
	}
	return c.echoes.read(w.key(), w, mark.Baseline)
}

// tellReverted tells the owner of w that what was written on it was taken off
// again, and counts it once per restart.
func (c *controller) tellReverted(w *Workload) {
	written, known := c.recollections.of(w)
	lost := known && c.echoes.read(w.key(), w, mark.Baseline) != written.baseline
	text := ""
	if lost || w.undone(w.Annotations[mark.RestartedAt]) {
		text = written.baseline + w.Annotations[mark.RestartedAt] + "reverted"
	}
	say, news := c.told.say(w.key(), reverted, text)
	if !say {
		return
	}
	stranger := c.consumers.topOf(w).stranger
	if news {
		c.metrics.reverted.WithLabelValues(string(w.Kind)).Inc()
	}
	c.log.Warn("what was written was taken off again", zap.Stringer("consumer", w.key()))
	c.events.Record(stampReverted(w, stranger))
}

// reverted is the topic of tellReverted.
const reverted = "reverted"

func stampReverted(w *Workload, stranger *Owner) kube.Event {
	event := about(w)
	event.Warning = true
	event.Reason, event.Action = "StampReverted", "Restart"
	by := "the schema of its kind, which must keep annotations of the pod template"
	if w.Owner != nil {
		by = "its owner " + someName(w.Owner.String())
	}
	event.Note = "What Headwater wrote on it was taken off again, most likely by " + by +
		": some of its pods may run with old data. It is not tried again before the next change"
	if stranger != nil {
		event.Note += "; if a " + string(stranger.Kind) + " holds the pod template, add that kind to reload.workloads in Headwater's configuration"
	}
	return event
}

// templateless is the topic of tellBare.
const templateless = "bare"

// tellBare tells the owner of w that it cannot be restarted, since it holds
// no pod template that Headwater knows of.
func (c *controller) tellBare(w *Workload) {
	if !w.Bare {
		return
	}
	event := about(w)
	event.Action = "Read"
	switch {
	case w.Borrows == nil:
		event.Reason = "NoPodTemplate"
		event.Note = "It is never restarted, since it holds no pod template at " + strings.Join(w.form().Template, ".")
	case c.strange(w.Borrows.kind):
		event.Reason = "TemplateElsewhere"
		event.Note = "It is never restarted, since its pod template is that of a " + string(w.Borrows.kind) +
			"; add that kind to reload.workloads in Headwater's configuration"
	}
	if say, _ := c.told.say(w.key(), templateless, event.Note); say {
		c.events.Record(event)
	}
}

func (c *controller) strange(kind Kind) bool {
	_, sight := c.consumers.look("", Owner{Kind: kind})
	return sight == SightStrange
}

// someName shortens a name to what an Event has room for.
func someName(name string) string {
	const most = 300
	return cut.To(name, most)
}
