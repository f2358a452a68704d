// Package spec is the protect section of the configuration: defaults,
// validation, the rules that it compiles to, and the names of the objects that
// Headwater registers.
//
// In: a decoded section. Out: a [Rule], which answers which operations on which
// objects it protects against, and which users it exempts. The package is pure.
package spec
