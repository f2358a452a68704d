// Package leader elects one replica as the leader and runs the leader's work on it.
//
// The work ends before the lease is released, and every write of a leader that lost
// its lease fails. Timings are those of kube-controller-manager, with a shorter
// retry period.
package leader
