// Package e2e holds the end-to-end tests: the built binary, as a process of
// its own and with exactly the permissions of deploy/rbac.yaml, against a real
// control plane. Tests run one after the other, since Headwater works
// cluster-wide; each brings its own namespaces and rules.
package e2e
