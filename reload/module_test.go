package reload

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
)

func TestPermissionsFollowTheDeclaredKinds(t *testing.T) {
	declared := []kinds.WorkloadKind{
		{CustomKind: kinds.CustomKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"}},
		{CustomKind: kinds.CustomKind{Group: "example.com", Version: "v1", Kind: "Mouse", Resource: "mice"}},
	}
	known := len(permissions(kube.Scope{}, withDefaults(spec.Settings{}), rules.NewSet[spec.Rule](), "headwater"))
	added := permissions(kube.Scope{}, withDefaults(spec.Settings{Workloads: declared}), rules.NewSet[spec.Rule](), "headwater")[known:]
	require.Len(t, added, 2)
	require.Equal(t, "clonesets", added[0].Resource)
	require.Equal(t, "apps.kruise.io", added[0].Group)
	require.Equal(t, "mice", added[1].Resource)
	require.Equal(t, []string{"list", "watch", "patch"}, added[1].Verbs)
}
