// Package webhook serves admission reviews over HTTPS.
//
//	AdmissionReview ──▶ Reviewer ──▶ decide.Request ──▶ decide.Decide ──▶ response
//
// It reads at most as many reviews at once as memory allows, answers every one
// that it accepted, and drains before it stops. It decides nothing itself, and
// neither keeps nor logs what a request contains.
package webhook
