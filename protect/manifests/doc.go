// Package manifests generates the objects that Headwater registers with the API
// server: the ValidatingAdmissionPolicies, their bindings and the webhook
// configuration.
//
//	rules, World ──▶ Policies, Configuration
//
// Its CEL expressions decide like package decide. The package is pure: it
// returns objects and sends no request.
package manifests
