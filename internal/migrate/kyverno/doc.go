// Package kyverno reads the policies of Kyverno that clone, deny and restart.
//
//	ClusterPolicy, Policy, CEL policies ──▶ []ir.Finding, what is left out
//
// The package is pure.
package kyverno
