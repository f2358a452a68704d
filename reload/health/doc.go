// Package health judges the rollouts that Headwater started.
//
//	Workload, its pods, time of the restart ──▶ RolloutHealth{Health, Reason, Pod}
//
// Pods that failed before the restart do not count. The package is pure.
package health
