// Command chaos runs three replicas of Headwater on a control plane of its own,
// breaks what can break while people and controllers go on working, and then
// looks whether everything came to what it must be. README.md says what is
// broken and what is looked at.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/headwater-k8s/headwater/test/cluster"
)

type options struct {
	seed           uint64
	rounds, faults int
	namespaces     int
	duration       time.Duration
	binary, rbac   string
}

var errViolated = errors.New("violations")

func main() {
	if err := run(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func parse() (o options, err error) {
	flag.Uint64Var(&o.seed, "seed", rand.Uint64(), "plays the same faults and the same work again")
	flag.IntVar(&o.rounds, "rounds", 2, "rounds, after each of which all must come to rest")
	flag.IntVar(&o.faults, "faults", 4, "faults of a round")
	flag.IntVar(&o.namespaces, "namespaces", 100, "namespaces that come and go at once")
	flag.DurationVar(&o.duration, "duration", 0, "play rounds for this long instead")
	flag.StringVar(&o.binary, "binary", "bin/headwater", "the headwater to try")
	flag.StringVar(&o.rbac, "rbac", "deploy/rbac.yaml", "its permissions")
	flag.Parse()
	if o.rounds < 1 || o.faults < 1 || o.namespaces < 1 || o.duration < 0 {
		return o, errors.New("-rounds, -faults and -namespaces must be at least 1, -duration must not be negative")
	}
	return o, nil
}

func run() (err error) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	o, err := parse()
	if err != nil {
		return err
	}
	c, err := cluster.Start(ctx, cluster.Options{Args: map[string][]string{
		// So that a watch that was away for a while cannot go on where it was.
		cluster.APIServer: {"--etcd-compaction-interval=10s"},
	}})
	if err != nil {
		return err
	}
	// The folder stays where something was wrong: the audit log and every replica's log are in it.
	defer func() { err = errors.Join(err, c.Discard(err)) }()
	s, err := newStorm(ctx, c, o)
	if err != nil {
		return err
	}
	defer s.end()
	err = errors.Join(s.blow(ctx), s.report.print(os.Stdout))
	if err == nil && len(s.report.violations) > 0 {
		err = errViolated
	}
	return err
}
