// Package unrestartable reports what a restart does not reach: pods without a pod template
// that Headwater can stamp, and Jobs that Reloader would recreate.
//
//	change ──▶ pods that consume it ──▶ after the debounce, one Event per controller
//	new pod ──▶ its Job ──▶ Event if an annotation asks to recreate it
//
// In: changes and pods. Out: Events. The package changes no consumer.
package unrestartable
