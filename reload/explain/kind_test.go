package explain

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
)

func TestKindsAsPeopleWriteThem(t *testing.T) {
	settings := spec.Settings{Workloads: []kinds.WorkloadKind{{CustomKind: kinds.CustomKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"}}}}
	rule, err := spec.Compile(rules.Base{Name: "r"}, spec.Config{Targets: []spec.Target{
		{CustomKind: kinds.CustomKind{Group: "example.com", Version: "v1", Kind: "Box", Resource: "boxen"}, Annotate: true},
	}})
	require.NoError(t, err)
	set := rules.NewSet(rule)
	for text, want := range map[string]kinds.Kind{
		"Deployment": kinds.KindDeployment, "deployments": kinds.KindDeployment, "deploy": kinds.KindDeployment, "STS": kinds.KindStatefulSet,
		"ds": kinds.KindDaemonSet, "cronjob": kinds.KindCronJob, "cj": kinds.KindCronJob, "po": kinds.KindPod, "pods": kinds.KindPod,
		"rollout": kinds.KindRollout, "Rollouts.argoproj.io": kinds.KindRollout, "ro": kinds.KindRollout, "dc": kinds.KindDeploymentConfig,
		"cloneset": "CloneSet.apps.kruise.io", "CloneSet.apps.kruise.io": "CloneSet.apps.kruise.io", "boxen": "Box.example.com",
	} {
		got, err := ParseKind(text, settings, set)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err = ParseKind("job", settings, set)
	require.ErrorContains(t, err, `kind "job" is none of [Deployment StatefulSet`)
}
