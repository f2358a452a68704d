// Package refs finds what a pod references.
//
//	PodSpec ──▶ References ──▶ []Reference{Kind, Name, Keys, Mode}
//
// The [Mode] says how the data reaches the container, and therefore whether a change
// needs a restart. The package is pure and does not depend on rules.
package refs
