package cluster

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
)

// shared holds the clusters of the package: all that were started, those that a
// test uses now, and those that are free.
var shared struct {
	sync.Mutex

	options *Options
	started []*Cluster
	used    map[testing.TB]*Cluster
	free    []*Cluster
}

// parallelTests is how many parallel tests run at once unless -parallel says
// otherwise. Each has a control plane, and they mostly wait, so the number of
// CPUs matters little.
const parallelTests = "2"

// Run runs the tests of a package that call Shared. It is for TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(cluster.Run(m, cluster.Options{})) }
//
// When a test failed, Run keeps the folders of the clusters and prints their paths.
func Run(m *testing.M, options Options) int {
	shared.options, shared.used = &options, map[testing.TB]*Cluster{}
	if err := flag.Set("test.parallel", parallelTests); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	var stopping sync.WaitGroup
	stopped := make([]error, len(shared.started))
	for i, c := range shared.started {
		stopping.Go(func() { stopped[i] = c.Stop() })
	}
	stopping.Wait()
	for i, c := range shared.started {
		if stopped[i] != nil {
			_, _ = fmt.Fprintln(os.Stderr, stopped[i])
			code = max(code, 1)
		}
		if err := discard(os.Stderr, c.Dir(), code != 0); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	return code
}

// Shared returns a cluster that no other test of the package uses until t ends.
// It starts one only if all are in use, so tests that run one after the other
// have the same cluster. No test has the cluster of one that failed, which is stopped:
// what it left there would fail others, too. With -short, t is skipped.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	skipShort(t)
	if shared.options == nil {
		t.Fatal("a shared cluster must be stopped: call cluster.Run in TestMain")
	}
	shared.Lock()
	defer shared.Unlock()
	if c := shared.used[t]; c != nil {
		return c
	}
	c, err := anyShared()
	if err != nil {
		t.Fatal(err)
	}
	shared.used[t] = c
	t.Cleanup(func() { giveBack(t, c) })
	return c
}

// giveBack leaves the cluster of t to the next test, or stops it if t failed. Its folder stays
// until Run ends, which keeps it then.
func giveBack(t testing.TB, c *Cluster) {
	t.Helper()
	failed := t.Failed()
	if failed {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	}
	shared.Lock()
	defer shared.Unlock()
	delete(shared.used, t)
	if !failed {
		shared.free = append(shared.free, c)
	}
}

// anyShared returns a free cluster, or a new one. The caller holds the lock, except
// while a cluster starts.
func anyShared() (*Cluster, error) {
	if last := len(shared.free) - 1; last >= 0 {
		c := shared.free[last]
		shared.free = shared.free[:last]
		return c, nil
	}
	shared.Unlock()
	c, err := Start(context.Background(), *shared.options)
	shared.Lock()
	if err == nil {
		shared.started = append(shared.started, c)
	}
	return c, err
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
