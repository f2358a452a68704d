package sync

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// errSourceUnread retries a key whose source namespace is not cached yet:
// absence from an unread cache means nothing.
var errSourceUnread = errors.New("the source namespace is not fully read yet")

// staleRetry is when a key is looked at again after the API server knew
// better than the cache. The event that follows normally comes first.
const staleRetry = time.Second

func (c *controller) reconcile(ctx context.Context, key Key) error {
	state, err := c.gather(key)
	if err != nil {
		return err
	}
	if state.MayTakeOver() {
		if state.Found, err = c.read(ctx, state.Rule.TargetRef(key.Source, key.Namespace)); err != nil {
			return err
		}
	}
	step := Plan(state)
	err = c.apply(ctx, state, step)
	if cacheWasBehind(err) {
		c.queue.After(key, staleRetry)
		return nil
	}
	c.record(key, state, step, err)
	return err
}

// read asks the API server for an object whose content is not cached, since it
// is not ours; nil when it is gone.
func (c *controller) read(ctx context.Context, target object.Ref) (*object.Digested, error) {
	hasher, err := c.key.Hasher()
	if err != nil {
		return nil, err
	}
	found, err := c.writer.Get(ctx, target)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return found.Digested(hasher), nil
}

// gather reads what is from the caches; it sends no request.
func (c *controller) gather(key Key) (State, error) {
	var state State
	if namespace, found := c.caches.Namespaces.Get("", key.Namespace); found {
		state.Namespace = &Namespace{namespace.Name, namespace.Labels, namespace.Terminating()}
	}
	set := c.live.Load()
	rule, found := set.Named(key.Rule)
	if !found || rule.Source.Ref() != key.Source {
		return state, nil
	}
	state.Rule = &rule
	var synced bool
	if state.Source, synced = c.caches.Sources.Get(key.Source); !synced {
		return state, errSourceUnread
	}
	target := rule.TargetRef(key.Source, key.Namespace)
	state.Clone, _ = c.caches.Clones[target.Kind].Get(target.Namespace, target.Name)
	if foreign, taken := c.caches.Foreign[target.Kind].Get(target.Namespace, target.Name); taken {
		state.Taken, state.WrittenByUs = true, foreign.WrittenByUs
	}
	if state.Namespace != nil {
		state.Claimant = claimant(set.All(), rule, target, *state.Namespace)
	}
	return state, nil
}

// claimant names the first rule before rule that has a clone called target in
// namespace.
func claimant(all []Rule, rule Rule, target object.Ref, namespace Namespace) string {
	for _, other := range all {
		if other.Name == rule.Name {
			return ""
		}
		if other.TargetRef(other.Source.Ref(), namespace.Name) == target &&
			other.namespaces.Matches(namespace.Name, namespace.Labels) {
			return other.Name
		}
	}
	return ""
}

func (c *controller) apply(ctx context.Context, state State, step Step) error {
	switch step.Action {
	case Create:
		return c.create(ctx, step.Desired)
	case Update:
		return c.update(ctx, state, step.Desired)
	case Recreate:
		if err := c.writer.Delete(ctx, state.live().Ref(), state.live().ObjectMeta); err != nil {
			return err
		}
		return c.create(ctx, step.Desired)
	case Remove:
		return c.writer.Delete(ctx, state.Clone.Ref(), state.Clone.ObjectMeta)
	default:
		return nil
	}
}

// create makes a clone. A namespace that went away meanwhile needs none.
func (c *controller) create(ctx context.Context, desired *object.Full) error {
	err := c.writer.Create(ctx, desired)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// update overwrites the live clone and keeps the metadata that others put on
// it.
func (c *controller) update(ctx context.Context, state State, desired *object.Full) error {
	var live object.Full
	if known := state.live(); known != nil {
		live.ObjectMeta = known.ObjectMeta
	} else { // it lost its label: only the API server still has its metadata
		found, err := c.writer.Get(ctx, desired.Ref())
		if err != nil {
			return err
		}
		live.ObjectMeta = found.ObjectMeta
		if !mark.WrittenByUs(found.ManagedFields) {
			return nil // replaced by somebody's own object meanwhile
		}
	}
	live.ManagedFields = nil
	live.Labels = object.Merged(live.Labels, desired.Labels)
	live.Annotations = object.Merged(live.Annotations, desired.Annotations)
	desired.ObjectMeta = live.ObjectMeta
	return c.writer.Update(ctx, desired)
}

func cacheWasBehind(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

// record tells what was done, or why nothing could be.
func (c *controller) record(key Key, state State, step Step, err error) {
	c.metrics.step(key.Rule, step, err)
	if err != nil || step.Action == Leave {
		return
	}
	fields := []zap.Field{
		zap.String("rule", key.Rule), zap.Stringer("source", key.Source), zap.String("namespace", key.Namespace),
		zap.String("action", string(step.Action)), zap.String("reason", string(step.Reason)),
	}
	if step.Writes() {
		c.log.Debug("clone written", fields...)
		return
	}
	c.log.Warn("clone not written", append(fields, zap.String("message", step.Message))...)
	c.events.Record(refusal(key, state, step))
}

// refusal is the Event for whoever can remove the cause: the owner of the
// object in the way, or else the owner of the source.
func refusal(key Key, state State, step Step) kube.Event {
	source := kube.Reference("v1", string(key.Source.Kind), state.Source)
	event := kube.Event{About: source, Warning: true, Reason: string(step.Reason), Action: string(step.Action), Note: step.Message}
	if step.Reason != Conflict && step.Reason != OtherRule {
		return event
	}
	target := object.NewMeta(state.Rule.TargetRef(key.Source, key.Namespace))
	event.About = kube.Reference("v1", string(key.Source.Kind), &target)
	event.Related = source
	return event
}
