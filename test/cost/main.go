// Command cost measures on a real control plane what one more clone, consumer
// or admission costs: Headwater, the API server and etcd. Each cost is the
// slope of a line through measurements at growing sizes; from the slopes it
// foretells larger clusters, what they run into first, and the settings to
// match. With -figures they go into deploy/figures.json and the documents.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/figures"
	"github.com/headwater-k8s/headwater/test/process"
)

type options struct {
	// sizes are numbers of clones, secrets of those that are nobody's, of which
	// each costs too little to be seen among a few hundred, steps those of all
	// else that may be there.
	sizes, secrets, steps, rules, payloads, judged numbers
	namespaces                                     int
	chart, machine                                 int // MiB
	figures, binary, rbac                          string
}

// numbers is a flag: numbers that grow, with commas between.
type numbers []int

func (n *numbers) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(*n), " ", ","), "[]")
}

// Set reads the flag.
func (n *numbers) Set(text string) error {
	*n = nil
	for word := range strings.SplitSeq(text, ",") {
		value, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || value < 0 {
			return fmt.Errorf("%q is no number", word)
		}
		*n = append(*n, value)
	}
	if !slices.IsSorted(*n) || len(slices.Compact(slices.Clone(*n))) < len(*n) || len(*n) < 2 {
		return errors.New("take two or more numbers that grow")
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

func parse() (o options, err error) {
	o = options{
		sizes: numbers{300, 1000, 3000, 10_000}, secrets: numbers{0, 5000, 15_000}, steps: numbers{0, 500, 1500}, rules: numbers{0, 10, 30},
		payloads: numbers{1 << 10, 10 << 10, 100 << 10, 1_000_000}, judged: numbers{200, 400, 800},
	}
	flag.Var(&o.sizes, "sizes", "numbers of clones to measure at, multiples of -namespaces")
	flag.Var(&o.secrets, "secrets", "numbers of other Secrets")
	flag.Var(&o.steps, "steps", "numbers of consumers, and of namespaces without a clone")
	flag.Var(&o.rules, "rules", "numbers of other rules")
	flag.Var(&o.payloads, "payloads", "sizes of a source in bytes, each cloned to every namespace")
	flag.Var(&o.judged, "judged", "numbers of protected writes, as dry runs")
	flag.IntVar(&o.namespaces, "namespaces", 100, "namespaces that hold the clones; the number of sources grows")
	flag.IntVar(&o.chart, "limit", 512, "the memory limit of Headwater's container, in MiB")
	flag.IntVar(&o.machine, "machine", 16<<10, "the memory of an API server's machine, in MiB")
	flag.StringVar(&o.figures, "figures", "", "the root of a repository of which to replace the figures in deploy/figures.json and in the documents")
	flag.StringVar(&o.binary, "binary", "bin/headwater", "the headwater to measure")
	flag.StringVar(&o.rbac, "rbac", "deploy/rbac.yaml", "its permissions")
	flag.Parse()
	if o.namespaces < 1 {
		return o, errors.New("-namespaces must be at least 1")
	}
	for _, n := range o.sizes {
		if n == 0 || n%o.namespaces != 0 {
			return o, fmt.Errorf("-sizes %d: take multiples of -namespaces, %d", n, o.namespaces)
		}
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
	like, err := figures.Now("make cost", "COST", os.Args[1:])
	if err != nil {
		return err
	}
	m, err := measureAll(ctx, o)
	if err != nil {
		return err
	}
	after, err := process.LoadAverage()
	if err != nil {
		return err
	}
	r := report{
		model: m, limits: limits(float64(o.chart)*mib, float64(o.machine)*mib),
		head: fmt.Sprintf("Measured on %s with `%s`, on %s, and of %s at the end; Headwater, etcd, the API server and the rest of the control plane share them.",
			time.Now().Format("2 January 2006"), like.Command, like.Machine, after),
	}
	fmt.Println(r.markdown())
	if o.figures == "" {
		return nil
	}
	like.Rows, like.Text = m.figures(), strings.Split(r.markdown(), "\n")
	return figures.Update(o.figures, map[string]figures.Run{"cost": like})
}

// measureAll runs everything on a cluster of its own. The namespaces come last,
// or they would be in the way of all else.
func measureAll(ctx context.Context, o options) (m *model, err error) {
	c, err := cluster.Start(ctx, cluster.Options{Args: map[string][]string{
		// Old editions go when they are told to, and not amid a measurement.
		cluster.APIServer: {"--etcd-compaction-interval=0"},
	}})
	if err != nil {
		return nil, err
	}
	defer func() { err = c.Discard(err) }()
	y, err := newYard(ctx, c, o)
	if err != nil {
		return nil, err
	}
	defer y.stop()
	for _, one := range []func(context.Context) error{y.clones, y.others, y.consumers, y.ruleSets, y.payloads, y.judging, y.namespaces} {
		if err := one(ctx); err != nil {
			return nil, err
		}
	}
	return y.model, nil
}

func progress(format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
