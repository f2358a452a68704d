package sync

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/sync/plan"
)

var errChangedMeanwhile = errors.New("the clone changed in the meantime")

// release removes Headwater's marks from the clone in state, which Headwater then
// no longer manages. It returns a conflict if the clone differs from the cache.
func (c *controller) release(ctx context.Context, state plan.State) error {
	live, err := c.writer.Get(ctx, state.Target)
	if err != nil {
		return err
	}
	if live.UID != state.Clone.UID || live.ResourceVersion != state.Clone.ResourceVersion {
		return apierrors.NewConflict(schema.GroupResource{Resource: live.Kind.Resource()}, live.Name, errChangedMeanwhile)
	}
	mark.Unstamp(&live.ObjectMeta)
	return c.writer.Update(ctx, live)
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
