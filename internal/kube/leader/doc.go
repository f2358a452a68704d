// Package leader elects one replica and runs the work of the leader on it.
//
// Work ends before the lease is given up, and every write of a leader that lost its
// lease fails. The timing is that of kube-controller-manager, with a shorter retry.
package leader
