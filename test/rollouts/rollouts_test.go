//go:build rollouts

package rollouts

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/test/cluster"
)

var deployments = flag.Int("deployments", 200, "how many Deployments roll out, ten in a namespace")

// limit is the default of reload.maxConcurrentRollouts.
const limit = 50

func TestMain(m *testing.M) {
	os.Exit(cluster.Run(m, cluster.Options{Args: map[string][]string{
		// The default of 50 pods a second would hide what is measured.
		cluster.Scheduler: {"--kube-api-qps=300", "--kube-api-burst=600"},
		// No kubelet tells that its node is alive.
		cluster.ControllerManager: {"--node-monitor-grace-period=24h"},
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
