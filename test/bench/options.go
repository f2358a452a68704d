package main

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/headwater-k8s/headwater/internal/kube/leader"
	"github.com/headwater-k8s/headwater/test/node"
)

type options struct {
	clones, rules, consumers, unrelated, rounds, samples, rate, unasked int
	binary, rbac, out, figures                                          string
	only                                                                []string
	lease                                                               time.Duration
	node, protected, strict                                             bool
}

// wants reports whether the rows of that name are to be measured.
func (o options) wants(name string) bool {
	return slices.Contains(o.only, name) || len(o.only) == 0 && (o.node || name != "refresh")
}

func parse() (o options, err error) {
	names := names()
	flag.IntVar(&o.clones, "n", 1000, "number of clones; fan-outs are measured at 100, 1,000 and 10,000 up to it, and at it")
	flag.IntVar(&o.rules, "rules", 1, "number of rules that clone a source each into every namespace; the first one is measured, and -n counts its clones alone")
	flag.IntVar(&o.consumers, "consumers", 1000, "number of consumers to restart or refresh, at most as many as there are clones")
	flag.IntVar(&o.unrelated, "unrelated", 5000, "number of Secrets that are not Headwater's, the bare ones included; of the others every hundredth has 100 KB")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds of each comparison, at least")
	flag.IntVar(&o.samples, "samples", 500, "samples of each latency")
	flag.IntVar(&o.rate, "rate", 100, fmt.Sprintf("writes a second, two thirds of them judged, under which a webhook is measured; admission at %d, too", fullRate))
	only := flag.String("only", "", "measure nothing but these, with commas between them: "+strings.Join(names, ", "))
	flag.BoolVar(&o.protected, "protected", true, "protect the source and its clones; false tells what that costs a fan-out, and needs -only fan-out")
	flag.BoolVar(&o.node, "node", false, "measure refresh as well, on a real node, which takes root and containerd")
	flag.IntVar(&o.unasked, "unasked", 0, "rounds in which to see how long a kubelet takes by itself, a minute and a half each; part of refresh")
	flag.BoolVar(&o.strict, "strict", true, "exit with 1 when a row is over its budget")
	flag.StringVar(&o.out, "o", "", "also write the rounds to this file, in Go's benchmark format, which benchstat compares")
	flag.StringVar(&o.figures, "figures", "", "the root of a repository of which to replace the figures in deploy/figures.json and in the documents")
	flag.DurationVar(&o.lease, "lease", leader.DefaultLeaseDuration, "--lease-duration of the replicas whose failover is measured")
	flag.StringVar(&o.binary, "binary", "bin/headwater", "the headwater to measure")
	flag.StringVar(&o.rbac, "rbac", "deploy/rbac.yaml", "its permissions")
	flag.Parse()
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	if err := o.check(names); err != nil {
		return o, err
	}
	o.consumers = min(o.consumers, o.clones)
	o.binary, err = filepath.Abs(o.binary)
	return o, err
}

func (o options) check(names []string) error {
	if o.clones < 1 || o.rules < 1 || o.consumers < 1 || o.rounds < 1 || o.samples < 1 || o.rate < 1 {
		return errors.New("-n, -rules, -consumers, -rounds, -samples and -rate must be at least 1")
	}
	for _, name := range o.only {
		if !slices.Contains(names, name) {
			return fmt.Errorf("-only %s: there is %s", name, strings.Join(names, ", "))
		}
	}
	if !o.protected && !slices.Equal(o.only, []string{"fan-out"}) {
		return errors.New("-protected=false needs -only fan-out: other rows measure the protection, too")
	}
	if o.wants("refresh") {
		return node.Missing()
	}
	return nil
}

// The budgets. A ratio is to the floor that is taken in the same run.
const (
	// fanOutBudget is how a source edit may compare with as many bare writes.
	fanOutBudget = 1.25
	// restartBudget is how restarts, and refreshes, may compare with bare patches.
	restartBudget = 1.25
	// oneCloneBudget is for the p99 until one clone is written while nothing else is.
	oneCloneBudget              = 50 * time.Millisecond
	newNamespaceMeanwhileBudget = time.Second
	refreshBudget               = time.Second
	// addedBudget is what a call of the webhook may add to a write, tailBudget how
	// its tail may compare with that of a webhook that does nothing.
	addedBudget = 3 * time.Millisecond
	tailBudget  = 1.10
	// startBudget is for the median; so is largeStartBudget, of a large cluster.
	startBudget      = 5 * time.Second
	largeStartBudget = 10 * time.Second
	// scrapeBudget is for the CPU time, statusBudget for the median.
	scrapeBudget = 300 * time.Millisecond
	statusBudget = 2 * time.Second
	// stagedFanOutBudget is how a delivery in stages may compare with one at once,
	// stagedMemoryBudget how their memory may, and stagedWritesBudget what a delivery
	// may write besides the clones: the revision, three or four for each stage (its look, its
	// evidence, and that it passed), and the deletion of an old revision.
	stagedFanOutBudget = 2
	stagedMemoryBudget = 1.05
	stagedWritesBudget = 18
	// rollbackBudget is how a rollback may compare with as many bare writes.
	rollbackBudget = 1.25
	// memoryBudget is in MiB; so is largeMemoryBudget, of a large cluster.
	memoryBudget      = 100
	largeMemoryBudget = 200
	// large is from how many clones, of all rules, a cluster is.
	large = 50_000
	// gracefulBudget and killedBudget are for the longest that it ever takes
	// until another leader writes.
	gracefulBudget = 5 * time.Second
	killedBudget   = 20 * time.Second
)
