package mark

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
)

func TestNamesOfOtherToolsAnnotations(t *testing.T) {
	require.Equal(t, "secret.reloader.stakater.com/auto", ReloaderTypedAuto(object.Secret))
	require.Equal(t, "configmap.reloader.stakater.com/reload", ReloaderNames(object.ConfigMap))
	require.Equal(t, "configmaps.exclude.reloader.stakater.com/reload", ReloaderExcludes(object.ConfigMap))
	require.Equal(t, "wave.pusher.com/extra-secrets", WaveExtras(object.Secret))
	require.Equal(t, "wave.pusher.com/extra-configmaps", WaveExtras(object.ConfigMap))
}

func TestOnlyWhatOwnersSayToOtherToolsIsKept(t *testing.T) {
	require.Nil(t, ForTools(map[string]string{
		"reloader.stakater.com/last-reloaded-from": "{}", "deployment.reloader.stakater.com/paused-at": "now",
		"wave.pusher.com/config-hash": "0123", Reload: "Auto",
	}))
	said := map[string]string{}
	for _, annotation := range WishAnnotations() {
		said[annotation] = "x"
	}
	kept := ForTools(said)
	require.Len(t, kept, len(said)-5, "all but Headwater's own")
	require.NotContains(t, kept, Reload)
}

func TestTags(t *testing.T) {
	require.Equal(t, Tags{}, TagsOf(map[string]string{ReloaderIgnore: "True", ReloaderMatch: "1"}))
	require.Equal(t, Tags{Ignore: true}, TagsOf(map[string]string{ReloaderIgnore: "true"}))
	require.Equal(t, Tags{Match: true}, TagsOf(map[string]string{ReloaderMatch: "true"}))
}
