// Package sync keeps a clone of each source in every namespace that its rule
// selects.
//
//	watches ──▶ queue of targets ──▶ survey.Reader ──▶ plan.Plan ──▶ one API write
//	                                                       │
//	                       │             progress ◀── outcome ──▶ Events, metrics
//	                       └── keys ──▶ board ──▶ metrics, RuleStatuses, page
//
// In: rules, sources, namespaces, clones. Out: one API write per clone that
// differs from what its source and rule say. The controller runs on the leader
// alone. It changes an object without Headwater's marks only where the rule's
// onConflict says so.
//
// Rooms, each importing only those before it: spec, plan, delivery, survey, deliverer,
// progress, board.
package sync
