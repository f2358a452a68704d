// Package events records Kubernetes Events.
//
// It groups repeats into a series, limits the rate per object, and keeps trying
// while the API server does not answer. client-go has no recorder that sets a related
// object and an action, keeps a series across a restart, and has a bound in memory.
package events
