// Package kube connects to the cluster: clients, reads and writes of one object,
// preflight checks, metrics of requests.
//
// Rooms: admission, leader, digestkey, events, informers. None of them decides
// anything about clones, sources or consumers; the modules do.
package kube
