// Package e2e holds the tests that need running containers. They are built with
// the tag node alone, since only root can run them: make test-node.
package e2e
