// Package editors lists who may change the source of a rule.
//
// In: a rule, Headwater's account, and what RBAC grants. Out: [Of] lists those that the
// rule exempts, and [Ways] those that RBAC lets act as one of them. Both are pure: they
// read no cluster.
package editors
