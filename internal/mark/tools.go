package mark

import (
	"maps"
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/internal/object"
)

// Annotations of Reloader on a workload or its pod template, and, for Ignore
// and Match, on a Secret or ConfigMap. What they mean is described in
// https://docs.stakater.com/reloader.
const (
	ReloaderAuto   = reloaderDomain + "auto"
	ReloaderSearch = reloaderDomain + "search"
	ReloaderMatch  = reloaderDomain + "match"
	ReloaderIgnore = reloaderDomain + "ignore"
	// ReloaderPausePeriod is the least time between two restarts of a
	// Deployment.
	ReloaderPausePeriod = "deployment." + reloaderDomain + "pause-period"
	// ReloaderStrategy is whether Argo's controller restarts the pods of a Rollout or
	// rolls a new version out.
	ReloaderStrategy = reloaderDomain + "rollout-strategy"
	// ReloaderClassAuto and ReloaderClasses are about what a Secrets Store CSI
	// driver mounts.
	ReloaderClassAuto = "secretproviderclass." + reloaderDomain + "auto"
	ReloaderClasses   = "secretproviderclass." + reloaderDomain + "reload"
)

// Annotations of Wave on a workload, described in
// https://github.com/wave-k8s/wave.
const (
	WaveUpdate          = waveDomain + "update-on-config-change"
	WaveExtraSecrets    = waveDomain + "extra-secrets"
	WaveExtraConfigMaps = waveDomain + "extra-configmaps"
)

const (
	reloaderDomain = "reloader.stakater.com/"
	waveDomain     = "wave.pusher.com/"
)

// ReloaderTypedAuto is ReloaderAuto for one kind of object.
func ReloaderTypedAuto(kind object.Kind) string {
	return strings.ToLower(string(kind)) + "." + reloaderDomain + "auto"
}

// ReloaderNames lists patterns of names of one kind.
func ReloaderNames(kind object.Kind) string {
	return strings.ToLower(string(kind)) + "." + reloaderDomain + "reload"
}

// ReloaderExcludes lists names of one kind.
func ReloaderExcludes(kind object.Kind) string {
	return kind.Resource() + ".exclude." + reloaderDomain + "reload"
}

// WaveExtras lists names of one kind.
func WaveExtras(kind object.Kind) string {
	if kind == object.Secret {
		return WaveExtraSecrets
	}
	return WaveExtraConfigMaps
}

// forTools are the annotations of workloads that other tools read, and that
// Headwater can.
var forTools = func() map[string]bool {
	known := map[string]bool{
		ReloaderAuto: true, ReloaderSearch: true, ReloaderPausePeriod: true, ReloaderStrategy: true, ReloaderClassAuto: true, ReloaderClasses: true, WaveUpdate: true,
	}
	for _, kind := range object.Kinds {
		for _, key := range []string{ReloaderTypedAuto(kind), ReloaderNames(kind), ReloaderExcludes(kind), WaveExtras(kind)} {
			known[key] = true
		}
	}
	return known
}()

// WishAnnotations are all by which the owner of a workload says what to reload
// it for, to Headwater or another tool.
func WishAnnotations() []string {
	return append(slices.Sorted(maps.Keys(forTools)), Reload, ReloadOn, ReloadKeys, ReloadDebounce, ReloadWindows)
}

// ForReloader reports whether an annotation is read by Reloader, and not Wave.
func ForReloader(annotation string) bool { return strings.Contains(annotation, reloaderDomain) }

// ForTools returns the annotations of a workload or pod template by which its
// owner tells other tools what to reload it for; nil when there are none.
func ForTools(annotations map[string]string) map[string]string {
	var found map[string]string
	for key, value := range annotations {
		if forTools[key] {
			if found == nil {
				found = map[string]string{}
			}
			found[key] = value
		}
	}
	return found
}

// Tags are what the annotations of a Secret or ConfigMap say to Reloader.
type Tags struct {
	// Ignore: it reloads nothing.
	Ignore bool
	// Match: it reloads the workloads that search.
	Match bool
}

// TagsOf reads the annotations of a Secret or ConfigMap.
func TagsOf(annotations map[string]string) Tags {
	return Tags{Ignore: annotations[ReloaderIgnore] == "true", Match: annotations[ReloaderMatch] == "true"}
}
