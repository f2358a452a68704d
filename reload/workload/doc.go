// Package workload is what the caches keep of a workload or a pod, and what follows
// from that alone: its owner, its rollout, why its pods fail.
//
// In: API objects. Out: a [Workload] or [Pod], with everything else dropped, so that
// the caches stay small. It has no client and makes no decision.
package workload
