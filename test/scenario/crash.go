package scenario

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/harness"
)

// quiet is for how long no write may come after a restart: well over the
// debounce of reload, and the time after which it confirms a refresh.
const quiet = 3 * time.Second

func (s *Story) crash(ctx context.Context) error {
	before, err := s.look(ctx)
	if err != nil {
		return err
	}
	if err := s.tell.Step(ctx, "headwater is killed with SIGKILL", func(context.Context) error { s.headwater.Kill(); return nil }); err != nil {
		return err
	}
	if err := s.whileDown(ctx); err != nil {
		return err
	}
	if err := s.tell.Step(ctx, "headwater starts again and is ready", s.start); err != nil {
		return err
	}
	err = s.tell.Step(ctx, "every clone is right again, once the dead leader's 15 s lease has run out", func(ctx context.Context) error {
		return s.untilCloned(ctx, "third")
	})
	if err != nil {
		return err
	}
	err = s.tell.Step(ctx, "the change missed while down reached all four consumers",
		s.untilChanged(before, envWorkload, envFromWorkload, podKey(volumeWorkload), podKey(barePod)))
	if err != nil {
		return err
	}
	if err := s.stepInside(ctx, "and the containers of all four read it", "third"); err != nil {
		return err
	}
	if err := s.tell.Step(ctx, "headwater has nothing left to do, and is stopped with SIGTERM", func(ctx context.Context) error {
		if err := s.settled(ctx); err != nil {
			return err
		}
		s.headwater.Stop()
		return nil
	}); err != nil {
		return err
	}
	mark := s.options.Cluster.Mark()
	if err := s.tell.Step(ctx, "a second restart, with nothing changed", func(ctx context.Context) error {
		if err := s.start(ctx); err != nil {
			return err
		}
		return s.headwater.Idle(ctx)
	}); err != nil {
		return err
	}
	return s.tell.Step(ctx, "makes zero writes, counted at the API server (its own lease apart)", func(ctx context.Context) error {
		return harness.Holds(ctx, quiet, func(ctx context.Context) error { return s.noWrites(ctx, mark) })
	})
}

func (s *Story) whileDown(ctx context.Context) error {
	err := s.tell.Step(ctx, "while it is down, jane is still refused", func(ctx context.Context) error {
		if err := s.patchSource(ctx, s.editor, "slip"); err == nil {
			return fmt.Errorf("it was allowed")
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.tell.Step(ctx, "while it is down, olga changes the source and deletes a clone", func(ctx context.Context) error {
		if err := s.patchSource(ctx, s.operator, "third"); err != nil {
			return fmt.Errorf("change the source: %w", err)
		}
		return s.admin.CoreV1().Secrets(teamB).Delete(ctx, sourceName, metav1.DeleteOptions{})
	})
}

// settled waits until Headwater's queues are empty and no write was made for a
// while.
func (s *Story) settled(ctx context.Context) error {
	return harness.Eventually(ctx, func(ctx context.Context) error {
		if err := s.headwater.Idle(ctx); err != nil {
			return err
		}
		mark := s.options.Cluster.Mark()
		return harness.Holds(ctx, quiet, func(ctx context.Context) error { return s.noWrites(ctx, mark) })
	})
}

// noWrites fails when Headwater has written to any object since mark. The
// lease is how it leads; reviews ask a question and store nothing.
func (s *Story) noWrites(ctx context.Context, mark cluster.Mark) error {
	writes, err := s.options.Cluster.Since(ctx, mark, func(r cluster.Request) bool {
		return r.User == harness.ServiceAccount && r.IsWrite() && r.Resource != "leases" && !strings.HasSuffix(r.Resource, "reviews")
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
