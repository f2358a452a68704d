// Package optin reads the annotations by which the owner of a workload asks for
// reloads.
//
//	annotations, settings ──▶ ReadPreferences ──▶ Preferences, faults
//
// Headwater's own annotations take precedence. Annotations of Stakater Reloader and
// Wave count if the configuration enables them. The package is pure.
package optin
