package reload

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/test/lab"
)

func TestConsumersOfASuspendedRuleAreLeftAloneUntilItGoesOn(t *testing.T) {
	e, _ := newStage(t, "dormant")
	rule := func(suspend string) string {
		return lab.Rule("dormant", suspend, "reload: {debounce: 0s, minInterval: 0s}")
	}
	const namespace = "dormant-src"
	e.Deployment(namespace, "web", lab.ByEnv("shared", "used"), nil)
	e.Deployment(namespace, "asks", lab.ByEnv("shared", "used"), map[string]string{"headwater.dev/reload": "Restart"})
	h := e.StartAlone(rule("suspend: false"))
	before := e.Adopted(h, namespace, "web", "asks")

	e.ConfigFile(rule("suspend: true"))
	e.HasMetric(h, 1, "headwater_config_reloads_total", map[string]string{"result": "applied"})
	e.Settled(h)
	mark := e.Cluster.Mark()
	e.Change("dormant", "used", "2")
	e.Deployment(namespace, "new", lab.ByEnv("shared", "used"), nil)
	e.Stays(e.NoWrites(mark))
	out, problem, exit := e.Command(e.Viewer("dormant-viewer"), "explain", "deploy/web", "-n", namespace, "--config", e.Dir+"/headwater.yaml")
	require.Zero(t, exit, problem)
	require.Contains(t, out, "the rule is suspended, so nothing happens until that ends")

	e.ConfigFile(rule("suspend: false"))
	e.Eventually(func(context.Context) error {
		now := e.Stamps(namespace)
		for _, name := range []string{"Deployment/web", "Deployment/asks"} {
			if now[name] == before[name] {
				return lab.ErrorIf(true, "%s is not restarted for what it missed", name)
			}
		}
		return nil
	})
}
