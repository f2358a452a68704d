package object

import "k8s.io/apimachinery/pkg/util/resourceversion"

// NewerThan reports whether version a is newer than b. Both are
// resourceVersions of one resource, which may be compared (KEP-5504). It is
// false when either is no number.
func NewerThan(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}
