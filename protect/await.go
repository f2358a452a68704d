package protect

import (
	"context"

	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/rules"
)

func hasRules(live *rules.Live[Rule]) bool { return len(live.Load().All()) > 0 }

// await blocks until something is needed, which a swap of the rules may change,
// or ctx ends. late is true when it had to wait.
func await(ctx context.Context, needed func() bool, live *rules.Live[Rule]) (late bool) {
	changed := loop.NewWake()
	defer live.Subscribe(func(_, _ *rules.Set[Rule]) { changed.Up() })()
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
