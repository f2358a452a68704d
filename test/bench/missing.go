package main

import (
	"fmt"

	"github.com/headwater-k8s/headwater/test/bench/measure"
)

// The size that the budgets are for.
const (
	fullClones    = 10_000
	fullUnrelated = 50_000
)

// tellMissing says which budgets this run says nothing about, unless that was
// asked for.
func (a *arena) tellMissing() {
	if len(a.options.only) > 0 {
		return
	}
	if !a.options.wants("refresh") {
		a.results.Add(measure.Row{
			What: "source edit to new bytes in containers", Value: "not measured: -node does, as root",
			Budget: fmt.Sprintf("p99 %d ms", refreshBudget.Milliseconds()),
		})
	}
	if a.options.clones < fullClones || a.options.unrelated < fullUnrelated {
		a.results.Add(measure.Row{
			What:  fmt.Sprintf("all of this at %d clones and %d unrelated Secrets", fullClones, fullUnrelated),
			Value: fmt.Sprintf("not measured: -n %d -unrelated %d does", fullClones, fullUnrelated),
		})
	}
}
