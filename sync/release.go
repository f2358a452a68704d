package sync

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
)

var errChangedMeanwhile = errors.New("the object changed in the meantime")

// release removes Headwater's marks from the clone in state, which Headwater then
// no longer manages. It returns a conflict if the clone differs from the cache.
func (c *controller) release(ctx context.Context, state plan.State) error {
	live, err := c.unchanged(ctx, state)
	if err != nil {
		return err
	}
	mark.Unstamp(&live.ObjectMeta)
	_, err = c.writer.Update(ctx, live)
	return err
}

// unchanged reads the object in state. It returns a conflict if the object differs from
// the cache.
func (c *controller) unchanged(ctx context.Context, state plan.State) (*object.Full, error) {
	live, err := c.writer.Get(ctx, state.Target)
	if err != nil {
		return nil, err
	}
	if known := state.Live(); live.UID != known.UID || live.ResourceVersion != known.ResourceVersion {
		return nil, changedMeanwhile(live)
	}
	return live, nil
}

func changedMeanwhile(live *object.Full) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: live.Kind.Resource()}, live.Name, errChangedMeanwhile)
}

// mark puts the marks of desired on an object of somebody else that Headwater takes
// over, and returns its new metadata. So Headwater deletes only objects with its marks.
func (c *controller) mark(ctx context.Context, state plan.State, desired *object.Full) (metav1.ObjectMeta, error) {
	live, err := c.unchanged(ctx, state)
	if err != nil {
		return metav1.ObjectMeta{}, err
	}
	live.Labels = object.Merged(live.Labels, mark.Ours(desired.Labels))
	live.Annotations = object.Merged(live.Annotations, mark.Ours(desired.Annotations))
	marked, err := c.writer.Update(ctx, live)
	if err != nil {
		return metav1.ObjectMeta{}, err
	}
	return marked.ObjectMeta, nil
}

// hasLeftovers reports whether a clone of rule exists that leftovers covers, or
// that may exist because its source is not cached yet.
func (c *controller) hasLeftovers(rule string, leftovers *plan.Leftovers) bool {
	clones, known := c.Leftovers(rule)
	if !known {
		return true
	}
	for _, clone := range clones {
		if leftovers.Revisions.Cover(clone) {
			return true
		}
	}
	return false
}
