// Package sync holds the end-to-end tests of clones: what becomes of them,
// whatever happens to whatever they come of, and what the commands tell of them.
package sync

import (
	"os"
	"testing"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/e2e"
)

func TestMain(m *testing.M) { os.Exit(cluster.Run(m, cluster.Options{})) }

// env is e2e.Env in the words of these tests.
type env struct{ *e2e.Env }

func newEnv(t *testing.T) *env {
	t.Helper()
	return &env{e2e.Parallel(t)}
}

// ownCluster is newEnv for a test with hundreds of namespaces. The controller
// manager takes half a minute to delete those, and other tests would have to wait.
func ownCluster(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	return &env{e2e.On(t, cluster.ForTest(t, cluster.Options{}))}
}
