package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/lab"
	"github.com/headwater-k8s/headwater/test/process"
)

// scrapes is over how many of them the CPU time of one is measured.
const scrapes = 20

// views measure what it costs to look: a scrape, `headwater status`, and the page.
func (a *arena) views(ctx context.Context) error {
	for _, rows := range []func(context.Context) error{a.scrapeCost, a.statusCommand, a.openPage} {
		if err := rows(ctx); err != nil {
			return fmt.Errorf("views: %w", err)
		}
	}
	return nil
}

// scrapeCost is the CPU time of Headwater for one scrape, with nothing else to do.
func (a *arena) scrapeCost(ctx context.Context) error {
	if err := a.headwater.Idle(ctx); err != nil {
		return err
	}
	before, err := process.CPUTime(a.headwater.PID())
	if err != nil {
		return err
	}
	for range scrapes {
		if _, err := a.headwater.Metrics(ctx); err != nil {
			return err
		}
	}
	after, err := process.CPUTime(a.headwater.PID())
	if err != nil {
		return err
	}
	a.results.Count(measure.Name{Key: fmt.Sprintf("views/scrape/clones=%d", a.total()), What: fmt.Sprintf("CPU time of a scrape, at %d clones", a.total())},
		(after-before).Seconds()*1000/scrapes, float64(scrapeBudget.Milliseconds()), measure.MS)
	return nil
}

// statusCommand times the command, as a process of its own. The floor is to list what
// it reads, in a process that runs already.
func (a *arena) statusCommand(ctx context.Context) error {
	took, floor, err := measure.Alternate(ctx, a.options.rounds, func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		command := exec.CommandContext(ctx, a.options.binary, "status", "--kubeconfig", a.Cluster.Kubeconfig())
		out, err := command.CombinedOutput()
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == 2 { // something needs attention
			err = nil
		}
		if err == nil && !strings.Contains(string(out), "bench") {
			err = errors.New("it does not show the rule")
		}
		if err != nil {
			return 0, fmt.Errorf("headwater status: %w: %s", err, out)
		}
		return time.Since(began), nil
	}, func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		_, err := a.Admin.RESTClient().Get().AbsPath("/apis/headwater.dev/v1alpha1/rulestatuses").DoRaw(ctx)
		return time.Since(began), err
	})
	if err != nil {
		return err
	}
	a.results.Within(measure.Name{Key: fmt.Sprintf("views/status/clones=%d", a.total()), What: fmt.Sprintf("`headwater status`, at %d clones", a.total())},
		took, floor, statusBudget)
	return nil
}

// installStatus installs the kind RuleStatus, as the chart does.
func (a *arena) installStatus(ctx context.Context) error {
	file := filepath.Join(filepath.Dir(a.options.rbac), "crd.yaml")
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		return nil // permissions of an older version, that knows no such kind
	}
	return lab.Apply(ctx, a.Cluster.Config(), file)
}
