// Package manifests writes what Headwater registers with the API server: the
// ValidatingAdmissionPolicies, their bindings and the webhook configuration.
//
//	rules, World ──▶ Policies, Configuration
//
// Its CEL expressions decide as package decide does. The package is pure: it
// returns objects and sends no request.
package manifests
