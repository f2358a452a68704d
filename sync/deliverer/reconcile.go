package deliverer

import (
	"context"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/revisions"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// work is one reconcile of one history.
type work struct {
	*Deliverer

	key     revisions.Key
	rule    *spec.Rule
	source  *object.Full
	stored  []*revisions.Stored
	history delivery.History
	current *delivery.Revision // the one with the source's content; nil if none is recorded
}

func (d *Deliverer) reconcile(ctx context.Context, key revisions.Key) error {
	err := d.deliver(ctx, key)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		d.queue.After(key, cacheRetry)
		return nil
	}
	return err
}

// deliver does the first thing that is due. Each write comes back as a change of a
// revision, and the next thing is done then.
func (d *Deliverer) deliver(ctx context.Context, key revisions.Key) error {
	rule, inForce := d.reader.Live.Load().Named(key.Rule)
	if !inForce || !rule.KeepsHistory() {
		return d.forget(ctx, key, inForce)
	}
	source, read := d.reader.Caches.Sources.Get(key.Source)
	if !read {
		d.queue.After(key, cacheRetry)
		return nil
	}
	if source == nil || source.DeletionTimestamp != nil || !rule.Selects(key.Source, source.Labels) || plan.Forbidden(rule, source) {
		return nil
	}
	w := &work{Deliverer: d, key: key, rule: rule, source: source, stored: d.reader.Revisions.Stored(key)}
	w.history = revisions.HistoryOf(w.stored)
	w.current = w.history.Of(source.Content, source.Digests)
	for _, step := range []func(context.Context) (done bool, err error){
		w.requests, w.tooLarge, w.record, w.unpin, w.supersede, w.withoutStages, w.advance, w.prune,
	} {
		if done, err := step(ctx); done || err != nil {
			return err
		}
	}
	return nil
}

// forget deletes the revisions of a rule that keeps none any more. Those of a rule
// that is gone stay while it has clones, so that they can be told apart.
func (d *Deliverer) forget(ctx context.Context, key revisions.Key, inForce bool) error {
	if !inForce && len(d.reader.ClonesOf(key.Rule)) > 0 {
		return nil
	}
	for _, stored := range d.reader.Revisions.Stored(key) {
		if err := d.store.Delete(ctx, stored); err != nil {
			return err
		}
	}
	return nil
}

// requests does what a person asked of this delivery.
func (w *work) requests(ctx context.Context) (bool, error) {
	approval := w.reader.Approvals.Of(w.rule.Name)
	request, found := approval.Deliveries[w.key.Source.String()]
	if !found || w.memory.isHandled(w.key, request) {
		return false, nil
	}
	changed, refused := w.reader.Apply(w.rule, w.history, w.current, request, w.now())
	for _, revision := range changed {
		if err := w.update(ctx, revision); err != nil {
			return true, err
		}
	}
	approval.Deliveries = maps.Clone(approval.Deliveries)
	delete(approval.Deliveries, w.key.Source.String())
	if err := survey.SetApproval(ctx, w.client, w.ownNamespace, w.rule.Name, approval); err != nil {
		return true, err
	}
	w.memory.handle(w.key, request)
	w.reportRequest(request, refused)
	w.queue.After(w.key, judgeDelay) // the revision may be as it was
	return true, nil
}

// tooLarge reports a source that is too large to keep revisions of.
func (w *work) tooLarge(ctx context.Context) (bool, error) {
	if !delivery.TooLarge(w.source.Content, *w.rule.History) {
		return false, nil
	}
	w.reportTooLarge()
	candidate := w.history.Candidate()
	if candidate == nil {
		return true, nil
	}
	return true, w.settle(ctx, candidate, delivery.Superseded, "the source became too large to keep revisions of")
}

// record records the source's content, if it is new.
func (w *work) record(ctx context.Context) (bool, error) {
	if w.current != nil {
		return false, nil
	}
	revision := delivery.Next(w.history, delivery.Edit{
		Rule: w.rule.Name, Source: w.key.Source, EditedBy: w.source.LastEditor(), At: w.now(),
		Invalid:   w.reader.Invalid(w.rule.Validator, w.source),
		AllAtOnce: w.source.Annotations[mark.Delivery] == mark.AllAtOnce,
	}, w.rule.Stages)
	if err := w.store.Create(ctx, w.source, revision); err != nil {
		return true, err
	}
	w.reportRecorded(revision)
	return true, nil
}

// unpin ends a rollback to an older revision.
func (w *work) unpin(ctx context.Context) (bool, error) {
	pinned := w.history.Pinned()
	if pinned == nil || !w.history.EndsRollback(w.current) {
		return false, nil
	}
	return true, w.update(ctx, pinned.Unpinned())
}

// supersede ends the delivery of every revision that the source no longer has.
func (w *work) supersede(ctx context.Context) (done bool, err error) {
	for _, revision := range w.history {
		if revision.UnderWay() && revision != w.current {
			done = true
			if err := w.settle(ctx, revision, delivery.Superseded, "the source was edited"); err != nil {
				return true, err
			}
		}
	}
	return done, nil
}

// withoutStages ends the delivery of a rule whose stages were taken away: its
// clones follow the source.
func (w *work) withoutStages(ctx context.Context) (bool, error) {
	candidate := w.history.Candidate()
	if w.rule.Stages != nil || candidate == nil {
		return false, nil
	}
	return true, w.settle(ctx, candidate, delivery.Delivered, "")
}

// prune deletes the revisions that are too many.
func (w *work) prune(ctx context.Context) (bool, error) {
	surplus := w.history.Surplus(*w.rule.History, w.current)
	for _, revision := range surplus {
		if err := w.store.Delete(ctx, w.storedOf(revision.Number)); err != nil {
			return true, err
		}
	}
	return len(surplus) > 0, nil
}

// settle ends the delivery of a revision.
func (w *work) settle(ctx context.Context, revision *delivery.Revision, verdict delivery.Verdict, reason string) error {
	return w.update(ctx, revision.Settled(verdict, reason))
}

// update writes what is known of a revision's delivery.
func (w *work) update(ctx context.Context, revision delivery.Revision) error {
	return w.store.Update(ctx, w.storedOf(revision.Number), revision)
}

// storedOf returns the stored form of a revision of the history.
func (w *work) storedOf(number int) *revisions.Stored {
	return w.stored[slices.IndexFunc(w.stored, func(s *revisions.Stored) bool { return s.Number == number })]
}
