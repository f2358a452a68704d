// Package track remembers what the running leader did and saw: writes that the
// caches do not show yet, restarts that wait, rollouts in progress, changes of keys.
//
// In: what the controller did, with the time. Out: answers to it. Each type locks
// itself. All of it is lost when the process ends; the next leader goes by what is
// written on the objects.
package track
