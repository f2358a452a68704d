package sync

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

var errChangedMeanwhile = errors.New("it was changed meanwhile")

// Leftovers are the clones of rule, which the configuration does not have, that
// no other rule has in its place. known is false while that cannot be told.
func (o *Observer) Leftovers(rule string) (clones []*object.Digested, known bool) {
	for _, clone := range o.clonesOf(rule) {
		state, err := o.state(clone.Ref())
		if err != nil {
			return nil, false
		}
		if state.isLeftover() {
			clones = append(clones, clone)
		}
	}
	return clones, true
}

// release takes the marks off the clone in state, as it is in the cache: the
// object is then nobody's.
func (c *controller) release(ctx context.Context, state State) error {
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
func (c *controller) stillLeft(rule string, leftovers *Leftovers) bool {
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
