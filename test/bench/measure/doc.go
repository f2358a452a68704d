// Package measure is what benches have in common: ways to time something on a
// cluster, by a watch and beside a floor; the statistics; and the table, for
// people and in Go's benchmark format.
package measure
