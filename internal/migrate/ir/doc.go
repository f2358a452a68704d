// Package ir is what the readers of other tools have in common: findings, and the
// patterns by which namespaces are selected.
//
// In: what a reader found. Out: a [Finding], which the builder turns into rules. The
// package is pure.
package ir
