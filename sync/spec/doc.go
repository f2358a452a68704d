// Package spec is the sync section of the configuration: its defaults, its
// validation and the rules that it compiles to.
//
// In: a decoded section. Out: a [Rule], which answers which sources, namespaces
// and clone names belong to it. The package is pure.
package spec
