// Package page serves a read-only web page of how Headwater stands: a grid of
// rules and namespaces, how the last change spread, and what was refused and
// reloaded of late. It follows what happens by server-sent events, and works
// only while somebody looks.
//
// It knows names and states, never a value, and nothing of the modules: the
// app tells it by a Feed what happens, and answers by a Subject how things are.
package page
