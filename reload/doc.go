// Package reload makes each consumer pick up a change of a Secret or ConfigMap in the
// cheapest way that works: no action, a refresh of its mounted files, or a rolling
// restart.
//
//	watches ──▶ queue of consumers ──▶ gather ──▶ decide ──▶ act: one patch ──▶ report
//	                                     ▲                       │
//	                                   track ◀───────────────────┘
//
// In: rules, workloads, pods, digests of data. Out: patches of workloads and pods,
// Events, metrics. The controller runs only on the leader.
//
// Rooms, each importing only those before it: kinds, refs, spec, optin, workload,
// health, consumerhealth, decide, track, gather, report, posts, unrestartable, evidence,
// fields, explain.
package reload
