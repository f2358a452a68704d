package kinds

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheResourceOfAKindIsItsPlural(t *testing.T) {
	for kind, want := range map[string]string{
		"CloneSet": "clonesets", "Gateway": "gateways", "Policy": "policies", "Ingress": "ingresses",
	} {
		require.Equal(t, want, CustomKind{Group: "example.com", Version: "v1", Kind: kind}.resource())
	}
}

func TestKindsAreToldApartByTheirGroup(t *testing.T) {
	for kind, form := range Typed {
		require.Equal(t, kind, form.ConsumerKind())
		require.Equal(t, form.GroupKind(), kind.GroupKind())
	}
	require.Equal(t, KindRollout, Known()[0].ConsumerKind())
	require.Equal(t, KindDeploymentConfig, Known()[1].ConsumerKind())
	for _, form := range Optional([]WorkloadKind{{CustomKind: CustomKind{Version: "v1", Kind: "PodTemplate"}}}) {
		require.Equal(t, form.GroupKind(), form.ConsumerKind().GroupKind())
	}
}
