// Package cel holds what Headwater has the API server evaluate against the API
// server's own CEL: every expression compiles, of every configuration, within
// the limits of the oldest Kubernetes that Headwater takes; and policies and
// webhooks come to the verdicts of protect.Decide. It has nothing but tests.
package cel
