package fields

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

var birth = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) // read only

func custom(t testing.TB, manifest string) *unstructured.Unstructured {
	t.Helper()
	var u unstructured.Unstructured
	require.NoError(t, yaml.Unmarshal([]byte(manifest), &u.Object))
	return &u
}
