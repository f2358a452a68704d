// Package sync keeps a clone of each source in every namespace that its rule
// selects.
//
// In: rules, sources, namespaces, clones. Out: one API write per clone that is
// not what its source and rule say. What to do is decided by Plan, which is
// pure; the controller only feeds it and carries out its answer. The package
// runs on the leader and touches an object without Headwater's marks only
// where a rule's onConflict says so.
package sync
