package scenario

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// quiet is for how long no write may come after a restart: well over the
// debounce of reload, and the time after which it confirms a refresh.
const quiet = 3 * time.Second

func (s *Story) crash(ctx context.Context) error {
	before, err := s.look(ctx)
	if err != nil {
		return err
	}
	var mark cluster.Mark
	return s.play(ctx,
		step{what: "headwater is killed with SIGKILL", do: func(context.Context) error { s.headwater.Kill(); return nil }},
		step{what: "while it is down, jane is still refused", do: func(ctx context.Context) error {
			return lab.ErrorIf(s.patchSource(ctx, s.editor, "slip") == nil, "it was allowed")
		}},
		step{what: "while it is down, olga changes the source and deletes a clone", do: func(ctx context.Context) error {
			if err := s.patchSource(ctx, s.operator, "third"); err != nil {
				return fmt.Errorf("change the source: %w", err)
			}
			return s.admin.CoreV1().Secrets(teamB).Delete(ctx, sourceName, metav1.DeleteOptions{})
		}},
		step{what: "headwater starts again and is ready", do: s.start},
		step{what: "every clone is right again, once the dead leader's 15 s lease has run out", do: func(ctx context.Context) error {
			return s.untilCloned(ctx, "third")
		}},
		step{
			what: "the change missed while down reached all four consumers",
			do:   s.untilChanged(before, envWorkload, envFromWorkload, podKey(volumeWorkload), podKey(barePod)),
		},
		s.inside("and the containers of all four read it", "third"),
		step{what: "headwater has nothing left to do, and is stopped with SIGTERM", do: func(ctx context.Context) error {
			if err := lab.Eventually(ctx, lab.Rests(s.options.Cluster, s.headwater, quiet)); err != nil {
				return err
			}
			s.headwater.Stop()
			mark = s.options.Cluster.Mark()
			return nil
		}},
		step{what: "a second restart, with nothing changed", do: func(ctx context.Context) error {
			if err := s.start(ctx); err != nil {
				return err
			}
			return s.headwater.Idle(ctx)
		}},
		step{what: "makes zero writes, counted at the API server (its own lease apart)", do: func(ctx context.Context) error {
			return lab.Holds(ctx, quiet, func(ctx context.Context) error { return s.noWrites(ctx, mark) })
		}})
}

// noWrites fails when Headwater has written to any object since mark. The
// lease is how it leads; reviews ask a question and store nothing.
func (s *Story) noWrites(ctx context.Context, mark cluster.Mark) error {
	writes, err := s.options.Cluster.Since(ctx, mark, func(r cluster.Request) bool {
		return r.User == lab.ServiceAccount && r.IsWrite() && r.Resource != "leases" && !strings.HasSuffix(r.Resource, "reviews")
	})
	if err != nil {
		return err
	}
	if len(writes) > 0 {
		first := writes[0]
		return fmt.Errorf("%d writes, the first: %s %s %s/%s", len(writes), first.Verb, first.Resource, first.Namespace, first.Name)
	}
	return nil
}
