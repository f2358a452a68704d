//go:build rollouts

package rollouts

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/figures"
)

var (
	deployments = flag.Int("deployments", 200, "how many Deployments roll out, ten in a namespace")
	figuresIn   = flag.String("figures", "", "the root of a repository of which to replace the figures in deploy/figures.json and in the documents")
)

// limit is the default of reload.maxConcurrentRollouts.
const limit = 50

func TestMain(m *testing.M) {
	os.Exit(cluster.Run(m, cluster.Options{Args: map[string][]string{
		// The default of 50 pods a second would hide what is measured.
		cluster.Scheduler: {"--kube-api-qps=300", "--kube-api-burst=600"},
		// What is judged is the whole history.
		cluster.APIServer: {"--etcd-compaction-interval=1h"},
	}}))
}

// TestManyDeploymentsRollOut edits one source that all of them consume: first
// with the limits as they are by default, beside one Deployment whose rollout
// never ends and one that is paused; then without any limit.
func TestManyDeploymentsRollOut(t *testing.T) {
	f := newFleet(t, *deployments)
	f.configure("")
	f.launch()
	f.deploy()
	f.deploySpecial("stuck", roomForOne)
	f.deploySpecial("paused", roomForAll)
	f.adopted()
	f.pause("paused", true)

	t.Run("never more than the limit, the smallest first", func(t *testing.T) {
		f := f.of(t)
		c := f.change("2", "stuck", "paused")
		require.Len(t, c.began, len(f.sizes)+2, "one restart for each, the stuck and the paused one included")
		require.Empty(t, c.again, "one edit restarts nothing twice")
		require.Equal(t, limit, c.most, "so many may, and so many should, be under way at once")
		require.Equal(t, map[string]bool{special("stuck"): true}, c.left, "nothing waited for the one that is stuck")
		// Those that were let begin together are written in any order.
		larger, smaller := c.overtaken(f.cloned, limit)
		require.Empty(t, larger, "it began before %s, which is smaller", smaller)
		f.replaced()
		f.keep(c)
	})
	t.Run("the paused one rolls out once it goes on", func(t *testing.T) {
		f := f.of(t)
		f.pause("paused", false)
		f.rolledOut(map[string]bool{special("stuck"): true})
	})
	t.Run("all of them at once without a limit", func(t *testing.T) {
		f := f.of(t)
		f.remove("stuck", "paused")
		f.configure("reload: {maxConcurrentRollouts: 0, maxConcurrentRolloutsPerNamespace: 0}\n")
		f.reloaded()
		c := f.change("3")
		require.Len(t, c.began, len(f.sizes))
		require.Empty(t, c.again)
		require.Empty(t, c.left)
		require.Greater(t, c.most, limit)
		f.replaced()
	})
}

// keep stores how long it took, where that is asked for.
func (f *fleet) keep(c course) {
	f.Helper()
	if *figuresIn == "" {
		return
	}
	run, err := figures.Now(fmt.Sprintf("make test-rollouts ROLLOUTS=%d", *deployments), "", nil)
	require.NoError(f, err)
	run.Rows = []figures.Row{{
		Key: fmt.Sprintf("rollouts/deployments=%d", *deployments), Unit: "ms", Value: figures.Values{Median: float64(c.took.Milliseconds())},
	}}
	require.NoError(f, figures.Update(*figuresIn, map[string]figures.Run{"rollouts": run}))
}
