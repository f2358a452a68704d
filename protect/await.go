package protect

import (
	"context"

	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// awaitNeeded blocks until needed returns true or ctx ends. It calls needed
// again after each reload of the rules. late is true if it had to wait.
func awaitNeeded(ctx context.Context, needed func() bool, live *rules.Live[spec.Rule]) (late bool) {
	changed := loop.NewWake()
	defer live.Subscribe(func(_, _ *rules.Set[spec.Rule]) { changed.Notify() })()
	for !needed() {
		late = true
		select {
		case <-ctx.Done():
			return late
		case <-changed:
		}
	}
	return late
}
