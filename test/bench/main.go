// Command bench measures Headwater on a real control plane, each figure beside
// a floor that is taken in the same run: what the same API server does for a
// bare client. README.md says what each floor is.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/node"
)

type options struct {
	clones, consumers, unrelated, rounds, samples, rate, unasked int
	only, binary, rbac                                           string
	node, strict                                                 bool
}

// wants reports whether the rows of that name are to be measured.
func (o options) wants(name string) bool {
	return o.only == name || o.only == "" && (o.node || name != "refresh")
}

// names are what -only takes, in the order of measuring.
var names = []string{
	"fan-out", "restarts", "start", "heal", "crowd", "mounts", "new-namespace", "new-namespace-meanwhile", "memory", "idle", "workloads", "admission", "refresh",
}

var errOver = errors.New("over budget")

func main() {
	if err := run(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	options, err := parse()
	if err != nil {
		return err
	}
	results := &table{title: fmt.Sprintf("clones of 1 KiB, %d unrelated Secrets, medians of at least %d rounds, p99 of %d samples; %s, %d CPUs",
		options.unrelated, options.rounds, options.samples, runtime.Version(), runtime.NumCPU())}
	if err := measure(ctx, options, results); err != nil {
		return errors.Join(err, results.print(os.Stdout))
	}
	if err := results.print(os.Stdout); err != nil {
		return err
	}
	if results.over() && options.strict {
		return errOver
	}
	return nil
}

func parse() (o options, err error) {
	flag.IntVar(&o.clones, "n", 1000, "number of clones; fan-outs are measured at 100, 1,000 and 10,000 up to it, and at it")
	flag.IntVar(&o.consumers, "consumers", 1000, "number of consumers to restart or refresh, at most as many as there are clones")
	flag.IntVar(&o.unrelated, "unrelated", 5000, "number of Secrets that are not Headwater's, the bare ones included; of the others every hundredth has 100 KB")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds of each comparison, at least")
	flag.IntVar(&o.samples, "samples", 500, "samples of each latency")
	flag.IntVar(&o.rate, "rate", 100, "writes a second, two thirds of them judged, under which a webhook is measured; two CPUs carry no 500")
	flag.StringVar(&o.only, "only", "", "measure nothing else: "+strings.Join(names, ", "))
	flag.BoolVar(&o.node, "node", false, "measure refresh as well, on a real node, which takes root and containerd")
	flag.IntVar(&o.unasked, "unasked", 0, "rounds in which to see how long a kubelet takes by itself, a minute and a half each; part of refresh")
	flag.BoolVar(&o.strict, "strict", true, "exit with 1 when a row is over its budget")
	flag.StringVar(&o.binary, "binary", "bin/headwater", "the headwater to measure")
	flag.StringVar(&o.rbac, "rbac", "deploy/rbac.yaml", "its permissions")
	flag.Parse()
	if o.clones < 1 || o.consumers < 1 || o.rounds < 1 || o.samples < 1 || o.rate < 1 {
		return o, errors.New("-n, -consumers, -rounds, -samples and -rate must be at least 1")
	}
	if o.only != "" && !slices.Contains(names, o.only) {
		return o, fmt.Errorf("-only %s: there is %s", o.only, strings.Join(names, ", "))
	}
	if o.wants("refresh") {
		if err := node.Missing(); err != nil {
			return o, err
		}
		o.clones = max(o.clones, refreshNamespaces)
	}
	o.consumers = min(o.consumers, o.clones)
	o.binary, err = filepath.Abs(o.binary)
	return o, err
}

// measure runs everything on a cluster of its own. The order matters: fan-outs
// as the cluster grows, then what wants it full, then what leaves more
// namespaces behind. The reviews come last, since they are counted.
func measure(ctx context.Context, o options, results *table) (err error) {
	c, err := cluster.Start(ctx, cluster.Options{Args: map[string][]string{
		cluster.ControllerManager: {"--node-monitor-grace-period=24h"}, // no kubelet tells that it is alive
	}})
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
		if o.wants("fan-out") {
			if err := a.fanOut(ctx); err != nil {
				return err
			}
		}
		if scale == o.consumers && o.wants("restarts") {
			if err := a.restarts(ctx); err != nil {
				return err
			}
		}
	}
	return a.finish(ctx)
}

// finish measures what wants the cluster full.
func (a *arena) finish(ctx context.Context) error {
	for _, one := range []struct {
		name    string
		measure func(context.Context) error
	}{
		{"start", a.starts},
		{"heal", a.heals},
		{"crowd", a.crowds},
		{"mounts", a.mounts},
		{"new-namespace", a.newNamespaces},
		{"new-namespace-meanwhile", a.newNamespacesMeanwhile},
		{"memory", a.memory},
		{"idle", a.idle},
		{"workloads", a.workloads},
		{"admission", a.admission},
		{"refresh", a.refreshes},
	} {
		if !a.options.wants(one.name) {
			continue
		}
		if err := one.measure(ctx); err != nil {
			return err
		}
	}
	return nil
}
