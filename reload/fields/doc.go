// Package fields keeps fields of custom resources equal to values of keys, for rules
// whose targets set fields.
//
//	rules, sources, custom resources ──▶ Controller ──▶ server-side apply
//
// It reads values from the API server right before it writes them, keeps none, and
// releases a field when its rule is removed.
package fields
