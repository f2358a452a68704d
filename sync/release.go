package sync

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/sync/plan"
)

var errChangedMeanwhile = errors.New("it was changed meanwhile")

// release takes the marks off the clone in state, as it is in the cache: the
// object is then nobody's.
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

// stillLeft reports whether leftovers covers a clone of rule.
func (c *controller) stillLeft(rule string, leftovers *plan.Leftovers) bool {
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
