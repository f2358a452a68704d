// Package certs issues, renews and serves the webhook's certificate.
//
//	Secret ──▶ Keeper ──▶ serving certificate, CA bundle
//	              │
//	   [Maintain] issues and renews Headwater's own, or the Secret is provided
//
// A certificate is served only after the API server trusts its CA. A CA is
// removed only after no replica serves a certificate that it signed. Private keys never leave the
// Secret and this process.
package certs
