// Package page serves a read-only web page about the status of Headwater: a grid of
// rules and namespaces, and a timeline of what happened. The page follows changes by server-sent events. It does no work while no
// browser is connected.
//
// It knows names and states, never a value, and does not know the modules: the app
// reports changes through a Feed, and the current state through a subject.
package page
