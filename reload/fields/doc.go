// Package fields keeps fields of custom resources at the values of keys, for the
// rules whose targets set fields.
//
//	rules, sources, custom resources ──▶ Controller ──▶ server-side apply
//
// It reads values from the API server right before it writes them, keeps none, and
// gives a field back when its rule is removed.
package fields
