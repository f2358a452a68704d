// Package kube is everything Headwater needs from client-go: the clients, the
// caches, writes, events, preflight checks and leader election. It decides
// nothing; the modules do.
package kube
