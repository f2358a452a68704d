// Package propagation decides which labels and annotations of a source are copied to
// its clones. It is pure.
package propagation

import (
	"path"
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// MaxGlobs is the maximum total length of the globs of a list, in bytes, so that their
// Pattern fits into an expression of the API server.
const MaxGlobs = 4 << 10

// ownershipKeys are prefixes of labels and annotations by which other tools claim an
// object. With them on a clone, such a tool would prune or adopt the clone;
// last-applied-configuration would contain values that the rule filters out.
var ownershipKeys = []string{
	"argocd.argoproj.io/", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by",
	"kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/", "fluxcd.io/",
	"meta.helm.sh/", "helm.sh/", "kubectl.kubernetes.io/", "kapp.k14s.io/", "objectset.rio.cattle.io/",
}

// Forbidden returns why key may not be on a clone, regardless of the rule; empty if it
// may.
func Forbidden(key string) string {
	switch {
	case strings.HasPrefix(key, mark.Domain):
		return "keys of " + mark.Domain + " are Headwater's own"
	case slices.ContainsFunc(ownershipKeys, func(prefix string) bool { return strings.HasPrefix(key, prefix) }):
		return "this key would hand the clone over to another tool"
	default:
		return ""
	}
}

// Copies reports whether globs copy key to clones.
func Copies(globs []string, key string) bool {
	return Forbidden(key) == "" && slices.ContainsFunc(globs, func(glob string) bool { return matches(glob, key) })
}

// matches is path.Match, except that * also matches the slash of a qualified name.
func matches(glob, key string) bool {
	matched, err := path.Match(strings.ReplaceAll(glob, "/", Slash), strings.ReplaceAll(key, "/", Slash))
	return err == nil && matched
}
