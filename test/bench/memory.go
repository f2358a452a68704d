package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// memoryBudget is in MiB.
const memoryBudget = 100

// memory measures what is resident after all that was done since the last
// start. It has no floor: an idle Go process is none.
func (a *arena) memory(ctx context.Context) error {
	if err := a.headwater.Idle(ctx); err != nil {
		return err
	}
	for _, of := range []struct {
		what, field string
		budget      bool
	}{{"resident memory", "VmRSS", true}, {"its highest ever", "VmHWM", false}} {
		mib, err := a.resident(of.field)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("%s, at %d clones and %d unrelated Secrets", of.what, a.clones, a.options.unrelated)
		if of.budget {
			a.results.count(what, mib, memoryBudget, " MiB")
		} else {
			a.results.add(row{what: what, value: fmt.Sprintf("%.4g MiB", mib)})
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
