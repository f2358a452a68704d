// Package track remembers what the running leader did and saw: writes that the caches
// do not show yet, waiting restarts, rollouts in progress, changes of keys.
//
//	controller ──▶ Memory: one record per consumer, one per object
//	           ──▶ Rollouts: one count and one line for all workloads
//	           ──▶ RolloutWatch: the restarts whose health is not known yet
//
// In: what the controller did, and when. Out: answers about it. Everything is lost when
// the process ends; the next leader reads what is written on the objects.
package track
