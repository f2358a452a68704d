// Package e2e is what end-to-end tests work with: Env, a test's view of a
// cluster. They run the built binary, as a process of its own and with exactly the
// permissions of deploy/rbac.yaml, against a real control plane.
//
// The tests are in the packages below, each with a control plane of its own, so
// that go test runs several side by side. Within a package they run one after
// the other, since Headwater works cluster-wide, but for those on a cluster of
// their own; each brings its own namespaces and rules.
package e2e
