package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
)

var shared struct {
	once    sync.Once
	options *Options
	cluster *Cluster
	err     error
}

// Run runs the tests of a package that call Shared. It is for TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(cluster.Run(m, cluster.Options{})) }
//
// The cluster's folder is kept, and its path told, when a test failed.
func Run(m *testing.M, options Options) int {
	shared.options = &options
	code := m.Run()
	if shared.cluster == nil {
		return code
	}
	if err := shared.cluster.Stop(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	if err := discard(os.Stderr, shared.cluster.Dir(), code != 0); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}

// Shared is the cluster that all tests of the package use, started by the first
// of them. Tests that need it are skipped with -short.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	skipShort(t)
	if shared.options == nil {
		t.Fatal("a shared cluster needs somebody to stop it: call cluster.Run in TestMain")
	}
	shared.once.Do(func() {
		//nolint:usetesting // the cluster outlives the test that starts it
		shared.cluster, shared.err = Start(context.Background(), *shared.options)
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}

// ForTest is a cluster of the test's own, for tests that break it or want it empty.
func ForTest(t testing.TB, options Options) *Cluster {
	t.Helper()
	skipShort(t)
	c, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		if err := discard(t.Output(), c.Dir(), t.Failed()); err != nil {
			t.Error(err)
		}
	})
	return c
}

func skipShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs a control plane: not with -short")
	}
}

func discard(log io.Writer, dir string, failed bool) error {
	if failed {
		_, _ = fmt.Fprintln(log, "the control plane's data and logs are kept in", dir)
		return nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove the cluster's folder: %w", err)
	}
	return nil
}
