// Package decide decides what a change of data means for one consumer: do nothing,
// record the data, refresh its files, restart it, or wait.
//
//	State: workload, Inputs, Known ──▶ checks ──▶ startChecks ──▶ Decision{Step, Reason, Wait, ...}
//
// The controller and `headwater explain` call the same functions. The package is pure:
// the time and the state of the cluster are arguments.
package decide
