package explain

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
)

func setTarget(t *testing.T, paths ...string) spec.CompiledTarget {
	t.Helper()
	declared := spec.Target{
		CustomKind: kinds.CustomKind{Group: "example.com", Version: "v1", Kind: "Bucket"},
		Selector:   &metav1.LabelSelector{MatchLabels: map[string]string{"set": "yes"}},
	}
	for _, path := range paths {
		declared.Set = append(declared.Set, spec.SetField{From: "key", To: path})
	}
	compiled, err := spec.CompileTarget(declared)
	require.NoError(t, err)
	return compiled
}
