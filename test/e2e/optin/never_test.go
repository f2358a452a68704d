package optin

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

// With None, owners may ask all the same; with Never they may not.
func TestAnOwnerAsksForNothingWhereARuleSaysNever(t *testing.T) {
	e := newEnv(t)
	e.Sections = "reload: {minInterval: 0s, maxRestartsPerHour: 0, compatibility: [Reloader]}\n"
	var all string
	asks := map[string]map[string]string{"own": {mark.Reload: "Restart"}, "reloader": {mark.ReloaderAuto: "true"}}
	for _, action := range []string{"None", "Never"} {
		prefix := strings.ToLower(action)
		all += strings.Replace(lab.ReloadRule(prefix), "reload: {", "reload: {action: "+action+", ", 1)
		namespace := e.Stage(prefix)
		for name, annotations := range asks {
			e.Deployment(namespace, name, lab.ByEnvFrom("shared"), annotations)
		}
	}
	h := e.Start(all)
	asked := e.Adopted(h, "none-a", "own", "reloader")
	e.Cloned("never", "used", "1")
	never := e.Stamps("never-a")
	e.Change("none", "used", "2")
	e.Change("never", "used", "2")
	e.Restarted("none-a", asked, "Deployment/own", "Deployment/reloader")
	e.Cloned("never", "used", "2")
	e.Settled(h)
	require.Equal(t, never, e.Stamps("never-a"))

	user, file := e.Viewer("never-viewer"), e.Dir+"/headwater.yaml"
	for name := range asks {
		out, problem, exit := e.Command(user, "explain", "deployment/"+name, "--namespace", "never-a", "--config", file)
		require.Zero(t, exit, problem)
		require.Contains(t, out, "the rule says Never, whatever an annotation asks")
		require.Contains(t, out, "rule never")
		out, problem, exit = e.Command(user, "explain", "deployment/"+name, "--namespace", "none-a", "--config", file)
		require.Zero(t, exit, problem)
		require.Contains(t, out, "annotation, over rule none")
	}
}
