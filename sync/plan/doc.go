// Package plan decides what happens to one clone.
//
//	State ──▶ Plan ──▶ Decision{Action, Reason, Message, Desired}
//
// [Plan] is the only place that decides which content a namespace gets. The
// same State always gives the same Decision, and a Decision that was carried
// out gives a State that needs none. [Guard] decides how many removals may
// happen at once. The package is pure: it reads no clock and sends no request.
package plan
