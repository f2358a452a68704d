package reload

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

// inInit is spec with its mounts moved from the app container to an init
// container, which ends, or with policy Always to a sidecar.
func inInit(spec corev1.PodSpec, policy *corev1.ContainerRestartPolicy) corev1.PodSpec {
	first := *spec.Containers[0].DeepCopy()
	first.Name, first.RestartPolicy = "first", policy
	spec.InitContainers = []corev1.Container{first}
	spec.Containers[0].VolumeMounts = nil
	return spec
}

func TestAVolumeOfAnInitContainerTakesARestart(t *testing.T) {
	e, namespace := onNode(t, "init")
	both := inInit(lab.ByVolume("shared"), nil)
	both.Containers[0].VolumeMounts = slices.Clone(both.InitContainers[0].VolumeMounts)
	both.NodeName = "init-node"
	for name, annotations := range map[string]map[string]string{"only": nil, "refresh": {mark.Reload: "Refresh"}} {
		e.Deployment(namespace, name, inInit(lab.ByVolume("shared"), nil), annotations)
	}
	e.Deployment(namespace, "sidecar", inInit(lab.ByVolume("shared"), new(corev1.ContainerRestartPolicyAlways)), nil)
	e.Create(namespace, lab.Deployment(namespace, "both", 1, both))
	e.RunningPod(namespace, "both")
	h := e.Reloads("init")
	before := e.Adopted(h, namespace, "only", "both")

	e.Change("init", "used", "2")
	e.Restarted(namespace, before, "Deployment/both", "Deployment/only")
	out, problem, exit := e.Command(e.Viewer("init-viewer"), "consumers", "secret/init-a/shared", "--config", e.ConfigFile(lab.ReloadRule("init")))
	require.Zero(t, exit, problem)
	require.Regexp(t, `Deployment/init-a/only +InitVolume +first \(init\) +rule init +Restart +Current +an init container reads the files, and has ended`, out)
	require.Regexp(t, `Deployment/init-a/refresh +InitVolume +first \(init\) +annotation, over rule init +Nothing +Untracked +only a restart would help, and the action is Refresh`, out)
	require.Regexp(t, `Deployment/init-a/sidecar +Volume +first \(sidecar\) +rule init +Refresh .*the kubelet rewrites the files`, out)
	require.Regexp(t, `Deployment/init-a/both +InitVolume +first \(init\) +rule init +Restart `, out)
}
