// Package kinds says which kinds of objects consume Secrets and ConfigMaps: those
// that Headwater knows, and those that the configuration declares.
//
// In: the configuration. Out: a [Kind], and an [Info] with where the pod template
// is. The package is pure.
package kinds
