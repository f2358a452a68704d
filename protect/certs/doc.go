// Package certs keeps the webhook's certificate.
//
//	Secret ──▶ Keeper ──▶ serving certificate, CA bundle
//	              │
//	   [Maintain] issues and renews Headwater's own, or the Secret is provided
//
// A certificate is served only once the API server trusts its CA, and a CA is
// withdrawn only once no replica serves under it. Private keys never leave the
// Secret and this process.
package certs
