// Package spec defines the sync section of the configuration: defaults, validation
// and the compiled rules.
//
// In: a decoded section. Out: a [Rule], which answers which sources, namespaces
// and clone names belong to it. The package is pure.
package spec
