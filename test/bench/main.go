// Command bench measures Headwater on a real control plane, each figure beside
// a floor that is taken in the same run: what the same API server does for a
// bare client. README.md says what each floor is.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/figures"
)

// pkg names what is measured, for benchstat.
const pkg = "github.com/headwater-k8s/headwater/test/bench"

var errOver = errors.New("over budget")

func main() {
	if err := run(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if len(os.Args) == 5 && os.Args[1] == serveYes {
		return runYes(ctx, os.Args[2], os.Args[3], os.Args[4])
	}
	options, err := parse()
	if err != nil {
		return err
	}
	results := &measure.Table{
		Title: fmt.Sprintf("clones of 1 KiB, %d unrelated Secrets, medians of at least %d rounds, p99 of %d samples; %s, %d CPUs",
			options.unrelated, options.rounds, options.samples, runtime.Version(), runtime.NumCPU()),
		Of: "Headwater",
	}
	like, err := figures.Now("make bench", "BENCH", os.Args[1:])
	if err != nil {
		return err
	}
	if err := results.Report(measureAll(ctx, options, results), os.Stdout, options.out, pkg); err != nil {
		return err
	}
	if options.figures != "" {
		if err := figures.Update(options.figures, runsOf(options, like, results.Figures())); err != nil {
			return err
		}
	}
	if results.Over() && options.strict {
		return errOver
	}
	return nil
}

// runsOf are the runs that the documents store: one of each kind of rows, or, with
// several rules, one of a large cluster.
func runsOf(o options, like figures.Run, rows []figures.Row) map[string]figures.Run {
	if o.rules == 1 {
		return figures.ByKind(like, rows)
	}
	like.Rows = rows
	return map[string]figures.Run{"large": like}
}

// phase measures some of the rows.
type phase struct {
	name    string
	measure func(*arena, context.Context) error
}

// growing are measured as the cluster grows, finishing once it is full: first
// what wants it so, then what leaves more namespaces behind or other replicas.
// The reviews come last, since they are counted.
func growing() []phase { return []phase{{"fan-out", (*arena).fanOut}, {"restarts", (*arena).restarts}} }

func finishing() []phase {
	return []phase{
		{"start", (*arena).starts},
		{"heal", (*arena).heals},
		{"crowd", (*arena).crowds},
		{"mounts", (*arena).mounts},
		{"new-namespace", (*arena).newNamespaces},
		{"new-namespace-meanwhile", (*arena).newNamespacesMeanwhile},
		{"memory", (*arena).memory},
		{"views", (*arena).views},
		{"idle", (*arena).idle},
		{"failover", (*arena).failovers},
		{"workloads", (*arena).workloads},
		{"sections", (*arena).sections},
		{"delivery", (*arena).deliveries},
		{"admission", (*arena).admission},
		{"refresh", (*arena).refreshes},
	}
}

// names are what -only takes, in the order of measuring.
func names() []string {
	var all []string
	for _, phase := range append(growing(), finishing()...) {
		all = append(all, phase.name)
	}
	return all
}

// measureAll runs everything on a cluster of its own.
func measureAll(ctx context.Context, o options, results *measure.Table) (err error) {
	c, err := cluster.Start(ctx, cluster.Options{})
	if err != nil {
		return err
	}
	defer func() { err = c.Discard(err) }()
	a, err := newArena(ctx, c, o, results)
	if err != nil {
		return err
	}
	defer a.stop()
	for _, scale := range scales(o) {
		if err := a.grow(ctx, scale); err != nil {
			return err
		}
		if err := a.measure(ctx, growing(), scale); err != nil {
			return err
		}
	}
	if err := a.measure(ctx, finishing(), a.clones); err != nil {
		return err
	}
	a.tellMissing()
	return nil
}

// measure takes those of phases that are wanted at that number of clones.
func (a *arena) measure(ctx context.Context, phases []phase, clones int) error {
	for _, phase := range phases {
		if !a.options.wants(phase.name) || phase.name == "restarts" && clones != a.options.consumers {
			continue
		}
		if err := phase.measure(a, ctx); err != nil {
			return err
		}
	}
	return nil
}
