package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// memory measures what is resident after all that was done since the last
// start. It has no floor: an idle Go process is none.
func (a *arena) memory(ctx context.Context) error {
	if err := a.headwater.Idle(ctx); err != nil {
		return err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.headwater.PID()))
	if err != nil {
		return err
	}
	for _, of := range []struct {
		what, field string
		budget      bool
	}{{"resident memory", "VmRSS", true}, {"its highest ever", "VmHWM", false}} {
		mib, err := mebibytes(string(status), of.field)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("%s, at %d clones and %d unrelated Secrets", of.what, a.clones, a.options.unrelated)
		if of.budget {
			a.results.count(what, mib, 100, " MiB")
		} else {
			a.results.add(row{what: what, value: fmt.Sprintf("%.4g MiB", mib)})
		}
	}
	return nil
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
