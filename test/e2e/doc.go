// Package e2e is what end-to-end tests work with: Env, a test's view of a
// cluster. They run the built binary, as a process of its own and with exactly the
// permissions of deploy/rbac.yaml, against a real control plane.
//
// The tests are in the packages below. Headwater works cluster-wide, so a test
// has a cluster to itself while it runs. A package starts a cluster for each test
// that runs at the same time, two unless -parallel says otherwise, and uses it for
// one test after the other. Each test has namespaces and rules of its own.
package e2e
