// Package property holds the end-to-end tests that do one thing at random after
// the other, and compare what becomes of it with what the rules ask for.
package property

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/e2e"
	"github.com/headwater-k8s/headwater/test/harness"
)

func TestMain(m *testing.M) { os.Exit(cluster.Run(m, cluster.Options{})) }

// env is e2e.Env in the words of these tests.
type env struct{ *e2e.Env }

// restWithin is how long it may take until all is at rest: controllers that found no API
// server look for it again half a minute later, and a busy machine takes its time.
const restWithin = 2 * time.Minute

// Eventually waits for what may take as long as that.
func (e *env) Eventually(condition func(context.Context) error) {
	e.Helper()
	require.NoError(e, harness.Within(e.Context(), restWithin, condition))
}

func newEnv(t *testing.T) *env {
	t.Helper()
	return &env{e2e.Parallel(t)}
}
