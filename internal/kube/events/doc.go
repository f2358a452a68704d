// Package events records Kubernetes Events.
//
// It groups repeats into a series, limits the rate per object, and keeps trying while
// the API server does not answer. client-go's recorders identify an Event without its
// note, so an object would show the first cause of a failure for as long as it fails.
package events
