package mark

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/headwater-k8s/headwater/internal/object"
)

// MaxListed bounds the objects that the owner of a workload may list in one
// annotation, by name or pattern: each has its place in the baseline.
const MaxListed = 100

// ParseReloadOn reads the value of ReloadOn, a list of Secret/NAME and
// ConfigMap/NAME in the workload's own namespace, separated by commas. The
// references are sorted, without repeats. One that is not readable, or more than
// MaxListed, make the whole value so.
func ParseReloadOn(namespace, value string) ([]object.Ref, error) {
	refs, err := parseList(value, func(item string) (object.Ref, error) {
		kind, name, _ := strings.Cut(item, "/")
		if !slices.Contains(object.Kinds, object.Kind(kind)) || len(validation.IsDNS1123Subdomain(name)) > 0 {
			return object.Ref{}, fmt.Errorf("%.40q is not Secret/NAME or ConfigMap/NAME", item)
		}
		return object.Ref{Kind: object.Kind(kind), Namespace: namespace, Name: name}, nil
	}, func(a, b object.Ref) int { return strings.Compare(a.String(), b.String()) })
	if len(refs) > MaxListed {
		return nil, fmt.Errorf("it lists %d objects, more than %d", len(refs), MaxListed)
	}
	return refs, err
}

// ParseReloadKeys reads the value of ReloadKeys, a list of keys separated by
// commas. They are sorted, without repeats. One that is not readable makes the
// whole value so.
func ParseReloadKeys(value string) ([]string, error) {
	return parseList(value, func(item string) (string, error) {
		if len(validation.IsConfigMapKey(item)) > 0 {
			return "", fmt.Errorf("%.40q is not a key", item)
		}
		return item, nil
	}, strings.Compare)
}

// parseList reads what is between commas, blanks around it left out.
func parseList[T comparable](value string, parse func(item string) (T, error), compare func(a, b T) int) ([]T, error) {
	if strings.TrimSpace(value) == "" {
		return nil, errors.New("it is empty")
	}
	var list []T
	for item := range strings.SplitSeq(value, ",") {
		parsed, err := parse(strings.TrimSpace(item))
		if err != nil {
			return nil, err
		}
		list = append(list, parsed)
	}
	slices.SortFunc(list, compare)
	return slices.Compact(list), nil
}
