// Package informers caches objects of the cluster, each kind with only what is needed
// of it.
//
//	watch ──▶ keep (drop, digest) ──▶ View ──▶ Change, indexes
//
// Data of Secrets and ConfigMaps is digested on arrival; only sources are kept whole.
// An [Optional] follows kinds that a cluster may lack.
package informers
