package optin

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

// A window of the rule and one of a workload must both be open.
func TestARestartWaitsForTheWindowsOfItsRuleAndOfItsWorkload(t *testing.T) {
	e := newEnv(t)
	later := time.Now().UTC().Add(12 * time.Hour)
	window := func(open bool) string {
		if open {
			return `[{"schedule": "* * * * *", "duration": "1h"}]`
		}
		return fmt.Sprintf(`[{"schedule": "%d %d * * *", "duration": "1m"}]`, later.Minute(), later.Hour())
	}
	var all string
	for prefix, open := range map[string]bool{"opened": true, "closed": false} {
		namespace := e.Stage(prefix)
		all += strings.Replace(lab.ReloadRule(prefix), "reload: {", "reload: {windows: "+window(open)+", ", 1)
		e.Deployment(namespace, "any", lab.ByEnv("shared", "used"), nil)
		e.Deployment(namespace, "now", lab.ByEnv("shared", "used"), map[string]string{mark.ReloadWindows: window(true)})
		e.Deployment(namespace, "later", lab.ByEnv("shared", "used"), map[string]string{mark.ReloadWindows: window(false)})
		e.Deployment(namespace, "wrong", lab.ByEnv("shared", "used"), map[string]string{mark.ReloadWindows: "nightly"})
	}
	h := e.Start(all)
	before := e.Adopted(h, "opened-a", "any", "now", "later", "wrong")
	closed := e.Adopted(h, "closed-a", "any", "now", "later", "wrong")
	e.Change("opened", "used", "2")
	e.Change("closed", "used", "2")
	e.Restarted("opened-a", before, "Deployment/any", "Deployment/now", "Deployment/wrong")
	e.Waits(h, 5, "window")
	e.Settled(h)
	require.Equal(t, closed, e.Stamps("closed-a"))
	require.Contains(t, e.HasEvent("opened-a", "wrong", "UnknownReload"), "write a list of 1 to 10 windows")
	require.Contains(t, e.HasEvent("opened-a", "later", "RestartWaits"), later.Format("15:04"))
	out, problem, exit := e.Command(e.Viewer("windows-viewer"), "explain", "deployment/later", "--namespace", "opened-a", "--config", e.Dir+"/headwater.yaml")
	require.Zero(t, exit, problem)
	require.Contains(t, out, "of the annotation headwater.dev/reload-windows")
	e.HasMetric(h, 1, "headwater_reload_workload_restarts", map[string]string{"namespace": "opened-a", "name": "any"})
}
