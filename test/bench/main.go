// Command bench measures Headwater against a floor taken in the same run, so
// that its figures mean something on a noisy machine: each row is a ratio to,
// or stands beside, what the same API server does for a bare client.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/headwater-k8s/headwater/test/cluster"
)

func main() {
	if err := run(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	options := options{}
	flag.IntVar(&options.clones, "n", 1000, "number of clones, of consumers, and of bare writes")
	flag.IntVar(&options.unrelated, "unrelated", 5000, "number of Secrets that are not Headwater's")
	flag.IntVar(&options.rounds, "rounds", 5, "rounds of each comparison")
	flag.StringVar(&options.binary, "binary", "bin/headwater", "the headwater to measure")
	flag.StringVar(&options.rbac, "rbac", "deploy/rbac.yaml", "its permissions")
	flag.Parse()
	if options.binary, err = filepath.Abs(options.binary); err != nil {
		return err
	}
	c, err := cluster.Start(ctx, cluster.Options{})
	if err != nil {
		return err
	}
	defer func() { err = c.Discard(err) }()
	fmt.Printf("%d clones of 1 KiB, %d unrelated Secrets, %d rounds; %s, %d CPUs\n\n",
		options.clones, options.unrelated, options.rounds, runtime.Version(), runtime.NumCPU())
	arena, err := newArena(ctx, c, options)
	if err != nil {
		return err
	}
	defer arena.stop()
	for _, measure := range []func(context.Context) error{
		arena.start, arena.fanOut, arena.newNamespaces, arena.heals, arena.restarts, arena.admission,
	} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return nil
}
