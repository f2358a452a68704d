// Package posts sends the HTTP requests that rules ask for to pods whose files were
// refreshed.
//
//	refreshed pod ──▶ queue ──▶ POST ──▶ counter, Event after the last attempt
//
// In: pods and requests. Out: requests. It keeps nothing else, and no answer decides
// anything.
package posts
