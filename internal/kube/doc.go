// Package kube connects to the cluster: clients, reads and writes of single
// objects, preflight checks and request metrics.
//
// Rooms: admission, leader, digestkey, events, informers. None of them decides
// anything about clones, sources or consumers; the modules do.
package kube
