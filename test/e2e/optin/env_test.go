// Package optin holds the end-to-end tests of owners who opt in to reloads
// without a rule, also in the words of other tools.
package optin

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
