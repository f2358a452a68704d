// Package property holds the end-to-end tests that do one thing at random after
// the other, and compare what becomes of it with what the rules ask for.
package property

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
