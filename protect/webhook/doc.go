// Package webhook serves admission reviews over HTTPS.
//
//	AdmissionReview ──▶ Reviewer ──▶ decide.Request ──▶ decide.Decide ──▶ response
//
// It limits concurrent reviews to bound its memory, answers every review that it
// accepted, and drains before it stops. Package decide makes the decisions. The
// webhook neither stores nor logs the content of a request.
package webhook
