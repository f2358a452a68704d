// Package admission reads refusals of the API server that come from an admission
// policy or a webhook.
//
// Their texts may quote the object, and so a value: [Redact] leaves out everything
// that is quoted. It is the only place that knows how the API server words them.
package admission
