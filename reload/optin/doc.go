// Package optin reads what the annotations of a workload ask for.
//
//	annotations, settings ──▶ ReadPreferences ──▶ Preferences, faults
//
// Headwater's own annotations take precedence. Those of Stakater Reloader and Wave
// count where the configuration enables them. The package is pure.
package optin
