// Package prove verifies that the API server denies what the rules forbid.
//
// [Prover] tries one edit per rule as an account without exemption, as a dry run
// that changes nothing. In: rules and their sources. Out: a [Proof], and a
// [Status] for each rule, stored in a ConfigMap for the next leader.
package prove
