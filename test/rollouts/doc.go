// Package rollouts shows with many Deployments that really roll out, on fake
// nodes of kwok, that restarts keep their limit and their order and that none
// holds up the others. It is built with the tag rollouts, so that `make test`
// does not grow; what judges a course has unit tests that always run.
package rollouts
