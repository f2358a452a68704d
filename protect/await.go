package protect

import (
	"context"
	"time"

	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// sooner returns the shorter of two delays, of which zero is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

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
