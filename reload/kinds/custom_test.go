package kinds_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/reload/kinds"
)

func TestTheResourceOfAKindIsItsPlural(t *testing.T) {
	for kind, want := range map[string]string{
		"CloneSet": "clonesets", "Gateway": "gateways", "Policy": "policies", "Ingress": "ingresses",
	} {
		require.Equal(t, want, kinds.CustomKind{Group: "example.com", Version: "v1", Kind: kind}.Info().Resource)
	}
}

func TestKindsAreToldApartByTheirGroup(t *testing.T) {
	for kind, form := range kinds.Typed {
		require.Equal(t, kind, form.ConsumerKind())
		require.Equal(t, form.GroupKind(), kind.GroupKind())
	}
	require.Equal(t, kinds.KindRollout, kinds.Known()[0].ConsumerKind())
	require.Equal(t, kinds.KindDeploymentConfig, kinds.Known()[1].ConsumerKind())
	for _, form := range kinds.Optional([]kinds.WorkloadKind{{CustomKind: kinds.CustomKind{Version: "v1", Kind: "PodTemplate"}}}) {
		require.Equal(t, form.GroupKind(), form.ConsumerKind().GroupKind())
	}
}
