// Package sync holds the end-to-end tests of clones: what becomes of them,
// whatever happens to whatever they come of, and what the commands tell of them.
package sync

import (
	"testing"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

func TestMain(m *testing.M) { lab.Main(m) }

// env is lab.Env in the words of these tests.
type env struct{ *lab.Env }

func newEnv(t *testing.T) *env { return &env{lab.Parallel(t)} }

// ownCluster is newEnv for a test with hundreds of namespaces. The controller
// manager takes half a minute to delete those, and other tests would have to wait.
func ownCluster(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	return &env{lab.On(t, cluster.ForTest(t, cluster.Options{}))}
}
