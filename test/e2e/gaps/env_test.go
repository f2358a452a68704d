// Package gaps holds the end-to-end tests of what happens while Headwater cannot
// see it: it is cut off, or there is no API server.
package gaps

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
