// Package annotations reads what the annotations of Reflector and
// kubernetes-replicator ask for.
//
//	metadata of Secrets and ConfigMaps ──▶ []ir.Finding
//
// The package is pure and never sees a value.
package annotations
