package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/headwater-k8s/headwater/test/bench/measure"
)

// memory measures what is resident after all that was done since the last
// start. It has no floor: an idle Go process is none.
func (a *arena) memory(ctx context.Context) error {
	if err := a.headwater.Idle(ctx); err != nil {
		return err
	}
	for _, of := range []struct {
		key, what, field string
		budget           bool
	}{{"resident", "resident memory", "VmRSS", true}, {"highest", "its highest ever", "VmHWM", false}} {
		mib, err := a.resident(of.field)
		if err != nil {
			return err
		}
		name := measure.Name{
			Key:  fmt.Sprintf("memory/%s/clones=%d/unrelated=%d", of.key, a.clones, a.options.unrelated),
			What: fmt.Sprintf("%s, at %d clones and %d unrelated Secrets", of.what, a.clones, a.options.unrelated),
		}
		if of.budget {
			a.results.Count(name, mib, memoryBudget, measure.MiB)
		} else {
			a.results.Number(name, mib, measure.MiB)
		}
	}
	return nil
}

// resident reads a figure of the process's memory, in MiB.
func (a *arena) resident(field string) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.headwater.PID()))
	if err != nil {
		return 0, err
	}
	return mebibytes(string(status), field)
}

// mebibytes reads a field of Linux's /proc/PID/status, which is in KiB.
func mebibytes(status, field string) (float64, error) {
	_, rest, _ := strings.Cut(status, field+":")
	kib, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	value, err := strconv.Atoi(kib)
	if err != nil {
		return 0, fmt.Errorf("read %s of the process: %w", field, err)
	}
	return float64(value) / 1024, nil
}
