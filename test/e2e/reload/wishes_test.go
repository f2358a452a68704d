package reload

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

func TestOwnersSayWhatTheyAreReloadedFor(t *testing.T) {
	e, namespace := newStage(t, "wishes")
	for name, wish := range map[string][2]string{
		"listed":      {mark.ReloadOn, "Secret/shared, ConfigMap/none"},
		"listed-key":  {mark.ReloadOn, "Secret/shared"},
		"listed-else": {mark.ReloadOn, "ConfigMap/shared"},
		"garbled":     {mark.ReloadOn, "shared"},
	} {
		annotations := map[string]string{wish[0]: wish[1]}
		if name == "listed-key" {
			annotations[mark.ReloadKeys] = "used"
		}
		e.Deployment(namespace, name, lab.ByNothing(), annotations)
	}
	e.Deployment(namespace, "by-key", lab.ByEnvFrom("shared"), map[string]string{mark.ReloadKeys: "used"})
	e.Deployment(namespace, "misspelt", lab.ByNothing(), map[string]string{"headwater.dev/relaod": "Off"})
	e.Deployment(namespace, "garbled-keys", lab.ByEnvFrom("shared"), map[string]string{mark.ReloadKeys: "used;unused"})
	h := e.Reloads("wishes")
	e.Settled(h)
	require.Contains(t, e.HasEvent(namespace, "garbled", "UnknownReload"), mark.ReloadOn)
	require.Contains(t, e.HasEvent(namespace, "garbled-keys", "UnknownReload"), mark.ReloadKeys)
	require.Contains(t, e.HasEvent(namespace, "misspelt", "UnknownReload"), "headwater.dev/relaod is ignored: no annotation has this name; did you mean headwater.dev/reload?")
	before := e.Stamps(namespace)
	for name, stamp := range before {
		require.Empty(t, stamp, "first sight is never a change: %s", name)
	}
	e.Change("wishes", "unused", "2")
	e.Restarted(namespace, before, "Deployment/listed", "Deployment/garbled-keys")
	before = e.Stamps(namespace)
	e.Change("wishes", "used", "2")
	e.Restarted(namespace, before, "Deployment/by-key", "Deployment/garbled-keys", "Deployment/listed", "Deployment/listed-key")
}
