// Package figures holds what was measured of Headwater, and writes it into the
// documents. deploy/figures.json is the only place where a figure is kept: the
// benchmarks store their runs there, and every block of a document between a
// begin and an end mark is made from it.
package figures
