package sync

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/admission"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/propagation"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
)

// staleRetry is the delay before a key is reconciled again when a write failed
// because the cache, or one of Headwater's own policies, was out of date. The
// watch event normally arrives first.
const staleRetry = time.Second

// blindRetry is the delay before a key is reconciled again that waits until the API server lets
// Headwater read what the write depends on.
const blindRetry = 5 * time.Second

// maxWait bounds one wait for the time at which a decision changes: the clock may be set.
const maxWait = time.Hour

func (c *controller) reconcile(ctx context.Context, target object.Ref) error {
	if target == c.Approvals.Ref {
		return c.settle(ctx)
	}
	if c.isBlind(target) {
		c.queue.After(target, blindRetry)
		return nil
	}
	defer c.board.Changed(target)          // failures, fights and objects found count
	changed := c.progress.ChangeOf(target) // before gather, so that the state includes at least these changes
	if c.postponeRepair(ctx, target, changed) {
		return nil
	}
	state, err := c.gather(ctx, target)
	if err != nil {
		return err
	}
	decision, ruled, err := c.underGuard(ctx, state, c.decide(state))
	if err != nil || !ruled {
		return err
	}
	if !decision.Until.IsZero() {
		c.queue.After(target, min(decision.Until.Sub(c.now()), maxWait))
	}
	undone, err := c.carryOut(ctx, state, decision)
	if cacheWasBehind(err) || c.policyIsBehind(err) {
		c.queue.After(target, staleRetry)
		return nil
	}
	outcome := progress.Outcome{State: state, Decision: decision, Rule: ruleOf(state, decision), Undone: undone, Err: err}
	if err == nil { // else the retry counts it
		c.countRepair(outcome, changed)
		c.reportNameTaken(outcome)
	}
	c.record(ctx, outcome)
	return err
}

// isBlind reports whether something that target depends on cannot be read, so that what the
// caches have of it may be old or lacks something: of the rules that may want a clone there, or
// of the source of the clone.
func (c *controller) isBlind(target object.Ref) bool {
	for _, rule := range c.RuleIndex(c.Live.Load()).Of(target) {
		if c.Caches.IsBlind(target.Kind, rule.Source.Namespace) {
			return true
		}
	}
	source := object.Ref{}
	if clone, found := c.Caches.Clones[target.Kind].Get(target.Namespace, target.Name); found {
		marks, _ := mark.Of(clone)
		source = marks.Source
	}
	return c.Caches.IsBlind(target.Kind, source.Namespace)
}

// decide returns what is to be done in state.
func (c *controller) decide(state plan.State) plan.Decision {
	decision := plan.Plan(state)
	c.progress.NoteFound(state, decision)
	return c.progress.LeaveName(state, decision, c.now())
}

// underGuard returns what the guard makes of decision. ruled is false while it has not ruled
// on a removal, which it is then asked about again.
func (c *controller) underGuard(ctx context.Context, state plan.State, decision plan.Decision) (_ plan.Decision, ruled bool, err error) {
	if !decision.IsGuarded() {
		c.noLongerDue(state)
		return decision, true, nil
	}
	rule := ruleOf(state, decision)
	verdict, err := c.mayRemove(ctx, state)
	switch {
	case err != nil:
		c.record(ctx, progress.Outcome{State: state, Decision: decision, Rule: rule, Err: err})
		return decision, false, err
	case verdict.Wait > 0:
		c.queue.After(state.Target, verdict.Wait)
		return decision, false, nil
	case verdict.News:
		c.emitRemovals(rule, verdict)
	}
	if !verdict.Pass {
		return verdict.Hold, true, nil
	}
	return c.Wait(decision, verdict.Passed), true, nil
}

// carryOut applies decision once an approval is withdrawn that the content to be written ends.
func (c *controller) carryOut(ctx context.Context, state plan.State, decision plan.Decision) (undone string, err error) {
	if decision.Desired != nil {
		if err := c.EndApproval(ctx, state.Candidates[0].Rule, state.Candidates[0].Ref); err != nil {
			return "", err
		}
	}
	return c.apply(ctx, state, decision)
}

// gather builds the State of target from the caches. It asks the API server only
// for an object without the clone label that Headwater may write.
func (c *controller) gather(ctx context.Context, target object.Ref) (plan.State, error) {
	state, err := c.State(target)
	if err != nil || !state.NeedsFound() {
		return state, err
	}
	state.Found, err = c.writer.Describe(ctx, target, c.key)
	state.Taken = state.Found != nil
	state.MadeByUs = state.Taken && state.Found.MadeByUs
	return state, err
}

// apply makes the write of decision, if it has one. undone is the first field that the
// API server then has otherwise than wanted.
func (c *controller) apply(ctx context.Context, state plan.State, decision plan.Decision) (undone string, err error) {
	var stored kube.Stored
	switch decision.Action {
	case plan.Create:
		stored, err = c.writer.Create(ctx, decision.Desired)
	case plan.Update:
		stored, err = c.update(ctx, state, decision.Desired)
	case plan.Recreate:
		stored, err = c.recreate(ctx, state, decision.Desired)
	case plan.Release:
		return "", c.release(ctx, state)
	case plan.Remove:
		return "", c.writer.Delete(ctx, state.Target, state.Clone.Meta())
	default:
		return "", nil
	}
	if err != nil || stored.AsSent {
		return "", err
	}
	described, err := c.describe(stored.Full)
	if err != nil {
		return "", err
	}
	return state.Undone(described), nil
}

// describe returns an answer of the API server in the form of the clone caches.
func (c *controller) describe(answered *object.Full) (*object.Digested, error) {
	hasher, err := c.key.Hasher()
	if err != nil {
		return nil, err
	}
	return kube.Describe(answered, hasher), nil
}

// recreate deletes the object only after dry runs show that the API server would store its
// replacement, and that this has anything that the object lacks: the replacement may be
// denied, for example by an exhausted quota, or be changed back by admission. An object of
// somebody else gets Headwater's marks before it is deleted.
func (c *controller) recreate(ctx context.Context, state plan.State, desired *object.Full) (stored kube.Stored, err error) {
	if err := c.writer.TryCreate(ctx, desired); err != nil {
		return kube.Stored{}, err
	}
	live := state.Live()
	meta := live.Meta()
	if _, ours := mark.Of(live); ours {
		if would, vain, err := c.inVain(ctx, live, desired); err != nil || vain {
			return would, err
		}
	} else if meta, err = c.mark(ctx, state, desired); err != nil {
		return kube.Stored{}, err
	}
	if err := c.writer.Delete(ctx, state.Target, meta); err != nil {
		return kube.Stored{}, err
	}
	return c.writer.Create(ctx, desired)
}

// inVain reports whether admission would make of desired what live is already. It does not if
// nobody knows.
func (c *controller) inVain(ctx context.Context, live *object.Digested, desired *object.Full) (would kube.Stored, vain bool, err error) {
	would, known, err := c.writer.WouldStore(ctx, desired)
	if err != nil || !known {
		return kube.Stored{}, false, err
	}
	described, err := c.describe(would.Full)
	if err != nil {
		return kube.Stored{}, false, err
	}
	return would, !plan.Brings(described, live), nil
}

// update overwrites the live clone and keeps labels and annotations that others
// added, except for copies of the values of an object that it takes over: nobody would
// ever change them again.
func (c *controller) update(ctx context.Context, state plan.State, desired *object.Full) (kube.Stored, error) {
	live := state.Live()
	meta := live.Meta()
	meta.Labels = plan.Overwritten(live.Labels, desired.Labels, live.LabelsByUs)
	meta.Annotations = plan.Overwritten(live.Annotations, desired.Annotations, live.AnnotationsByUs)
	if _, ours := mark.Of(live); !ours && !live.MadeByUs {
		maps.DeleteFunc(meta.Annotations, func(key, _ string) bool { return propagation.HoldsValues(key) })
	}
	desired.ObjectMeta = meta
	return c.writer.Update(ctx, desired)
}

// cacheWasBehind reports whether a write failed because the object changed, or
// its namespace started to terminate, before the cache showed it.
func cacheWasBehind(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// policiesSettle bounds how long after its start a leader can be denied by
// policies of an earlier leader that ran under another user name. By then the
// policies are registered again and every API server has read them.
const policiesSettle = 10 * time.Second

// policyIsBehind reports whether one of Headwater's own policies denied the write
// because it still exempts Headwater's former user name.
func (c *controller) policyIsBehind(err error) bool {
	return slices.Contains(c.policies, admission.RefusingPolicy(err)) && c.now().Sub(c.startedAt) < policiesSettle
}
