package deliverer

import (
	"context"
	"fmt"
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/plan"
)

// baseline records what the clones have as delivered, if no delivered revision is kept and
// they have something else than the source: there is something to go back to.
func (w *work) baseline(ctx context.Context) (bool, error) {
	if w.history.Stable() != nil || w.rule.Stages == nil {
		return false, nil
	}
	held := w.Reader.OtherPayloads(w.rule, w.source)
	if len(held) != 1 {
		return false, nil
	}
	clone, err := w.Writer.Get(ctx, held[0].Ref())
	if err != nil || clone == nil || clone.ResourceVersion != held[0].ResourceVersion {
		w.queue.After(w.key, judgeDelay) // the cache will show it
		return true, err
	}
	had := plan.AsSource(w.rule, w.source, clone)
	return true, w.store.Create(ctx, had, revisions.Revision{
		Number: w.free, Rule: w.rule.Name, Source: w.key.Source, Verdict: revisions.Delivered,
		Reason: "what the clones had when their delivery began", Emptied: plan.NewWanted(w.rule, had, 0).Lacks.ID,
	})
}

// record records the source's content, if it is new. Content that was rejected before other
// revisions is recorded as rejected again: a person asks for the newest one.
func (w *work) record(ctx context.Context) (bool, error) {
	if w.current != nil && (w.current.Verdict != revisions.Rejected || w.current == w.history.Newest()) {
		return false, nil
	}
	if err := w.Reader.EndApproval(ctx, w.rule, w.key.Source); err != nil {
		return true, err
	}
	revision := delivery.Next(w.history, w.edit(), w.rule.Stages)
	revision.Number = w.free
	if err := w.store.Create(ctx, w.source, revision); err != nil {
		return true, err
	}
	w.reportRecorded(revision)
	return true, nil
}

// edit returns the edit that made the source what it is.
func (w *work) edit() delivery.Edit {
	verdict := w.Reader.Judge(w.rule.Validator, w.source)
	edit := delivery.Edit{
		Rule: w.rule.Name, Source: w.key.Source, EditedBy: w.source.LastEditor(), At: w.now(),
		Content: w.source.Content, Digests: w.source.Digests, Keys: w.rule.Target.Keys, Delivery: w.source.Annotations[mark.Delivery],
		Unclear: w.unclear(),
	}
	edit.Rejected = w.rejected()
	if w.rule.Stages != nil {
		edit.AllowAllAtOnce = *w.rule.Delivery.AllowAllAtOnce
	}
	if verdict.ValidFrom.IsZero() {
		edit.Invalid = verdict.String()
	}
	lacks := w.Reader.Emptied(w.rule, w.source)
	switch {
	case lacks.What != "":
		edit.Unclear, edit.Emptied = fmt.Sprintf("the source has %s; its clones get that once you run `headwater approve %s`", lacks.What, w.rule.Name), lacks.ID
		edit.HeldUntil = verdict.ValidFrom
	case edit.Unclear == "":
		edit.Emptied = w.Reader.Lack(w.rule, w.source).ID
		if edit.HeldUntil = verdict.ValidFrom; !edit.HeldUntil.IsZero() {
			edit.Unclear = fmt.Sprintf("%s; it is delivered then", verdict)
		}
	}
	return edit
}

// rejected returns which rule rejected the source's content before; empty if none did.
func (w *work) rejected() string {
	before := w.Reader.Revisions.RejectedBefore(w.key, w.source.Content, w.source.Digests)
	if before == nil {
		return ""
	}
	return fmt.Sprintf("rule %s rejected its content as revision %d; `headwater retry %s` delivers it", before.Rule, before.Number, w.rule.Name)
}

// unclear returns why nobody knows whether the source's content may be delivered; empty if
// that is known.
func (w *work) unclear() string {
	foreign := len(w.history) == 0 && w.Reader.Revisions.HasForeign(w.key)
	if w.history.Stable() != nil || w.rule.Stages == nil && !foreign {
		return ""
	}
	why, others := "", len(w.Reader.OtherPayloads(w.rule, w.source))
	switch {
	case others > 0 && foreign:
		why = "the recorded revisions are of another digest key, so it is not known whether it was rejected or rolled back"
	case others > 1:
		why = "the clones of the source differ, so it is not known what to go back to"
	default:
		return ""
	}
	return fmt.Sprintf("%s; `headwater retry %s` delivers it", why, w.rule.Name)
}

// noteApproval records what the source lacks with a delivered revision, once that is approved:
// its clones may have that also when the approval has ended.
func (w *work) noteApproval(ctx context.Context) (bool, error) {
	lacks := w.Reader.Lack(w.rule, w.source).ID
	isDelivered := w.current != nil && (w.current.Verdict == revisions.Delivered || w.current.Verdict == revisions.Delivering)
	if !isDelivered || w.current.Emptied == lacks || w.Reader.Emptied(w.rule, w.source).What != "" {
		return false, nil
	}
	noted := *w.current
	noted.Emptied = lacks
	return true, w.update(ctx, noted)
}

// maxWait bounds one wait for a certificate to become valid: the clock may be set.
const maxWait = time.Hour

// release begins the delivery of what was held for its time, or for what its source lacked, once
// the time has come, and that is approved or not needed any more.
func (w *work) release(ctx context.Context) (bool, error) {
	held := w.current
	if held == nil || !held.EndsByItself() {
		return false, nil
	}
	verdict := w.Reader.Judge(w.rule.Validator, w.source)
	if wait := verdict.ValidFrom.Sub(w.now()); wait > 0 {
		w.queue.After(w.key, min(wait, maxWait))
	}
	if len(verdict.Problems) > 0 || w.Reader.Emptied(w.rule, w.source).What != "" {
		return false, nil
	}
	if rejected := w.rejected(); rejected != "" {
		return true, w.update(ctx, held.Settled(revisions.Rejected, rejected))
	}
	retry := delivery.Request{Verb: delivery.Retry, Revision: held.Number}
	changed, err := retry.Apply(w.rule.Stages, w.history, held, w.now())
	if err != nil {
		return true, err
	}
	return true, w.updateAll(ctx, changed)
}
