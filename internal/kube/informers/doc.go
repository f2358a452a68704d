// Package informers caches objects of the cluster, reduced to the fields that the
// modules need.
//
//	watch ──▶ keep (drop, digest) ──▶ View ──▶ Change, indexes
//
// Data of Secrets and ConfigMaps is digested on arrival; only sources are kept whole.
// An [Optional] caches kinds that a cluster may not serve.
package informers
