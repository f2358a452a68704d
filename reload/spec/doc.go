// Package spec is the reload section of the configuration: defaults, validation,
// the rules and settings that it compiles to, and the words in which decisions
// are given ([Step], [Reason]).
//
// In: a decoded section. Out: a [Rule], [Compiled] settings. The package is pure.
package spec
