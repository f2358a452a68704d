// Package admission recognizes errors of the API server that come from an admission
// policy or webhook.
//
// Their messages may quote the object, and so a value of a Secret: [Redact] removes
// the message. No other package depends on the wording of these errors.
package admission
