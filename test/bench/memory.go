package main

import (
	"context"
	"fmt"

	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/process"
)

// memory measures what is resident after all that was done since the last
// start. It has no floor: an idle Go process is none.
func (a *arena) memory(ctx context.Context) error {
	if err := a.headwater.Idle(ctx); err != nil {
		return err
	}
	budget := memoryBudget
	if a.total() >= large {
		budget = largeMemoryBudget
	}
	for _, of := range []struct {
		key, what, field string
		budget           bool
	}{{"resident", "resident memory", process.Resident, true}, {"highest", "its highest ever", process.Peak, false}} {
		mib, err := a.resident(of.field)
		if err != nil {
			return err
		}
		name := measure.Name{
			Key:  fmt.Sprintf("memory/%s/clones=%d/unrelated=%d", of.key, a.total(), a.options.unrelated),
			What: fmt.Sprintf("%s, at %d clones and %d unrelated Secrets", of.what, a.total(), a.options.unrelated),
		}
		if of.budget {
			a.results.Count(name, mib, float64(budget), measure.MiB)
		} else {
			a.results.Number(name, mib, measure.MiB)
		}
	}
	return nil
}

// resident reads a figure of the process's memory, in MiB.
func (a *arena) resident(field string) (float64, error) {
	bytes, err := process.MemoryBytes(a.headwater.PID(), field)
	return float64(bytes) / (1 << 20), err
}
