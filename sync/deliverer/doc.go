// Package deliverer records the revisions of sources and moves each new one from
// stage to stage.
//
//	source edited ──▶ record a revision ──▶ stage, gate, soak ──▶ next stage, …, Delivered
//	                                            └─ gate fails ──▶ Rejected, or Held
//
// In: changes of sources, clones, revisions, requests of people. Out: revisions in
// Headwater's namespace. It writes no clone: package sync does, from what the
// revisions say. What to do is decided by package delivery.
package deliverer
