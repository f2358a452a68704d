// Package migrate translates what other tools are told to do into rules of
// Headwater: Kyverno's policies that clone, deny and restart, and the
// annotations of Reflector and kubernetes-replicator.
//
// In: policies, and the metadata of Secrets and ConfigMaps; never a value. Out:
// one configuration file, with a comment on each thing that is not as it was.
// What cannot be said in a rule makes the rule reach less, never more; where it
// would reach more, the rule is there as a comment, with the reason.
package migrate
