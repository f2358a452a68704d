package main

import "time"

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
	// may write besides the clones: the revision, when each stage begins and when the
	// last one passed, and the deletion of an old revision.
	stagedFanOutBudget = 1.5
	stagedMemoryBudget = 1.05
	stagedWritesBudget = 8
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
