// Package kinds defines the kinds of objects that consume Secrets and ConfigMaps:
// built-in ones, and those that the configuration declares.
//
// In: the configuration. Out: a [Kind], and an [Info] with the path to the pod
// template. The package is pure.
package kinds
