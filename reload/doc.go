// Package reload makes the consumers of a changed object pick the change up,
// each in the cheapest way that works: a rollout where a value went into the
// environment, a refresh of the volume where it is mounted, nothing where it
// is not consumed.
//
// In: rules, clones and sources, workloads and pods. Out: at most one small
// patch per workload or pod. Which references a pod template holds (refs.go)
// and what a change means for them (decide.go) are pure. The package runs on
// the leader; what a workload is known to run is durable, on the workload.
package reload
