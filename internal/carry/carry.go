// Package carry says which labels and annotations of a source go over to its
// clones. It is pure.
package carry

import (
	"path"
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// MaxGlobs is how many characters the globs of a list may have together, so that
// their Pattern fits into an expression of the API server.
const MaxGlobs = 4 << 10

// ownershipKeys are prefixes of labels and annotations by which other tools
// claim an object; on a clone they would have it pruned, adopted or, for
// last-applied-configuration, leak values that were filtered out.
var ownershipKeys = []string{
	"argocd.argoproj.io/", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by",
	"kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/", "fluxcd.io/",
	"meta.helm.sh/", "helm.sh/", "kubectl.kubernetes.io/", "kapp.k14s.io/", "objectset.rio.cattle.io/",
}

// Never returns why key may not be on a clone, whoever asks for it; empty if it
// may.
func Never(key string) string {
	switch {
	case strings.HasPrefix(key, mark.Domain):
		return "keys of " + mark.Domain + " are Headwater's own"
	case slices.ContainsFunc(ownershipKeys, func(prefix string) bool { return strings.HasPrefix(key, prefix) }):
		return "this key would hand the clone over to another tool"
	default:
		return ""
	}
}

// Over reports whether key goes over by one of globs.
func Over(globs []string, key string) bool {
	return Never(key) == "" && slices.ContainsFunc(globs, func(glob string) bool { return matches(glob, key) })
}

// matches lets * run across the slash of a qualified name.
func matches(glob, key string) bool {
	matched, err := path.Match(strings.ReplaceAll(glob, "/", Slash), strings.ReplaceAll(key, "/", Slash))
	return err == nil && matched
}
