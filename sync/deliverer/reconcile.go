package deliverer

import (
	"context"
	"errors"
	"slices"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// work is one reconcile of one history.
type work struct {
	*Deliverer

	key    revisions.Key
	rule   *spec.Rule
	source *object.Full
	// free is the number of the next revision: one that is recorded meanwhile has it.
	free    int
	stored  []*revisions.Stored
	history revisions.History
	current *revisions.Revision // the one with the source's content; nil if none is recorded
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
	if d.Reader.Caches.IsBlindToDelivery(key.Source.Kind, key.Source.Namespace) {
		d.queue.After(key, blindRetry)
		return nil
	}
	rule, inForce := d.Reader.Live.Load().Named(key.Rule)
	if !inForce {
		return d.leave(ctx, key)
	}
	source, read := d.Reader.Caches.Sources.Get(key.Source)
	if !read {
		d.queue.After(key, cacheRetry)
		return nil
	}
	w := &work{Deliverer: d, key: key, rule: rule, source: source}
	w.free = d.Reader.Revisions.FirstFree(key) // before stored, which may grow in between
	w.stored = d.Reader.Revisions.Stored(key)
	w.history = revisions.HistoryOf(w.stored)
	exists := source != nil && source.DeletionTimestamp == nil && rule.Selects(key.Source, source.Labels) && !plan.Forbidden(rule, source)
	if exists {
		w.current = w.history.Of(source.Content, source.Digests)
	}
	for _, step := range w.steps(exists) {
		if done, err := step(ctx); done || err != nil {
			return err
		}
	}
	return nil
}

// steps are what may be due, in order. exists is false if there is no source to deliver.
func (w *work) steps(exists bool) []func(context.Context) (done bool, err error) {
	switch {
	case w.rule.Suspended && exists:
		w.memory.change(w.key, func(r *remembered) { r.judged = nil })
		return []func(context.Context) (bool, error){w.requests}
	case w.rule.Suspended:
		return nil
	case !w.rule.KeepsHistory() && exists:
		return []func(context.Context) (bool, error){w.takeOver, w.requests, w.release, w.forget}
	case !w.rule.KeepsHistory():
		return []func(context.Context) (bool, error){w.forget}
	case !exists:
		return nil
	default:
		return []func(context.Context) (bool, error){
			w.takeOver, w.requests, w.baseline, w.record, w.noteApproval, w.release, w.unpin, w.supersede, w.withoutStages, w.advance, w.prune,
		}
	}
}

// leave deletes the revisions of a rule that is not in force, unless another rule takes
// them over. They stay while the rule has clones, so that these can be told apart.
func (d *Deliverer) leave(ctx context.Context, key revisions.Key) error {
	if heir, found := d.Reader.Heir(key); found {
		d.queue.Fresh(heir)
		return nil
	}
	if len(d.Reader.ClonesOf(key.Rule)) > 0 {
		return nil
	}
	return d.deleteAll(ctx, d.Reader.Revisions.Stored(key))
}

// forget deletes the revisions of a rule that keeps none any more, unless the source still
// has what a delivery did not let pass.
func (w *work) forget(ctx context.Context) (bool, error) {
	if delivery.NotPassed(w.current) {
		return true, nil
	}
	return true, w.deleteAll(ctx, w.stored)
}

func (d *Deliverer) deleteAll(ctx context.Context, all []*revisions.Stored) error {
	for _, stored := range all {
		if err := d.store.Delete(ctx, stored); err != nil {
			return err
		}
	}
	return nil
}

// takeOver takes over the history that a rule with the same source left, the newest
// revision first: a crash in between leaves older ones to be taken later.
func (w *work) takeOver(ctx context.Context) (bool, error) {
	inherited := w.Reader.Inheritance(w.key)
	for _, stored := range inherited {
		if err := w.store.Hand(ctx, stored, w.key.Rule); err != nil {
			return true, err
		}
	}
	return len(inherited) > 0, nil
}

var errSuspended = errors.New("the rule is suspended; remove `suspend` from it first")

// requests does what a person asked of this delivery. It does it once, also while the request
// cannot be answered.
func (w *work) requests(ctx context.Context) (bool, error) {
	request, found := w.Reader.Requests.Of(w.rule.Name)[w.key.Source.String()]
	if !found || request.Refused != "" {
		return false, nil
	}
	if handled := w.memory.of(w.key).handled; handled != nil && handled.Equal(request) {
		w.answer(ctx, *handled)
		return false, nil
	}
	changed, refused := w.Reader.Apply(w.rule, w.history, w.current, request, w.now())
	if w.rule.Suspended {
		changed, refused = nil, errSuspended
	}
	if err := w.updateAll(ctx, changed); err != nil {
		return true, err
	}
	w.reportRequest(request, refused)
	if refused != nil {
		request.Refused = refused.Error()
	}
	w.memory.change(w.key, func(r *remembered) { r.handled = &request })
	w.answer(ctx, request)
	w.queue.After(w.key, judgeDelay) // the revision may be as it was
	return true, nil
}

// answer says what became of a request, and tries again later if it cannot.
func (w *work) answer(ctx context.Context, request delivery.Request) {
	if err := w.Reader.Requests.Answer(ctx, w.rule.Name, w.key.Source.String(), request); err != nil {
		w.Log.Warn("a request cannot be answered; retrying", zap.Stringer("source", w.key.Source), zap.Error(err))
		w.queue.After(w.key, answerRetry)
	}
}

// unpin ends a rollback to an older revision.
func (w *work) unpin(ctx context.Context) (bool, error) {
	if w.history.Pinned() == nil || !w.history.EndsRollback(w.current) {
		return false, nil
	}
	return true, w.updateAll(ctx, w.history.EndRollback(w.current))
}

// supersede ends the delivery of every revision that the source no longer has.
func (w *work) supersede(ctx context.Context) (done bool, err error) {
	for _, revision := range w.history {
		if revision.UnderWay() && revision != w.current {
			done = true
			if err := w.update(ctx, revision.Settled(revisions.Superseded, "the source was edited")); err != nil {
				return true, err
			}
		}
	}
	return done, nil
}

// withoutStages ends the delivery of a rule whose stages were taken away: its clones
// follow the source, unless the delivery is held.
func (w *work) withoutStages(ctx context.Context) (bool, error) {
	candidate := w.history.Candidate()
	if w.rule.Stages != nil || candidate == nil || candidate.Verdict == revisions.Held {
		return false, nil
	}
	return true, w.update(ctx, candidate.Settled(revisions.Delivered, ""))
}

// prune deletes the revisions that are too many.
func (w *work) prune(ctx context.Context) (bool, error) {
	surplus := w.history.Surplus(revisions.Kept(w.source.Content, *w.rule.History), w.current)
	for _, revision := range surplus {
		if err := w.store.Delete(ctx, w.storedOf(revision.Number)); err != nil {
			return true, err
		}
	}
	return len(surplus) > 0, nil
}

// updateAll updates in order, so that a crash in between leaves what can go on.
func (w *work) updateAll(ctx context.Context, changed []revisions.Revision) error {
	for _, revision := range changed {
		if err := w.update(ctx, revision); err != nil {
			return err
		}
	}
	return nil
}

// update writes what is known of a revision's delivery.
func (w *work) update(ctx context.Context, revision revisions.Revision) error {
	return w.store.Update(ctx, w.storedOf(revision.Number), revision)
}

// storedOf returns the stored form of a revision of the history.
func (w *work) storedOf(number int) *revisions.Stored {
	return w.stored[slices.IndexFunc(w.stored, func(s *revisions.Stored) bool { return s.Number == number })]
}
