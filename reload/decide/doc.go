// Package decide decides what a change of data means for one consumer: nothing,
// record the data, refresh its files, restart it, or wait.
//
//	[]Input, stored Baseline ──▶ decision ──▶ Decision{Step, Reason, Baseline, ...}
//	                                 │
//	         Pace, Windows, RolloutCoverage ──▶ Wait
//
// The controller and `headwater explain` both decide by it. The package is pure: the
// time and everything that exists in the cluster come in as arguments.
package decide
