package reload

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/e2e"
	"github.com/headwater-k8s/headwater/test/harness"
)

// bothWays reads key used of Secret shared into the environment, and mounts all
// of them, on that node.
func bothWays(node string) corev1.PodSpec {
	spec := harness.ByVolume("shared")
	spec.Containers[0].Env = harness.ByEnv("shared", "used").Containers[0].Env
	spec.NodeName = node
	return spec
}

func TestAPodThatAlsoMountsItIsRestartedOrRefreshedByTheKey(t *testing.T) {
	e := newEnv(t)
	e.Node("bothways-node")
	namespace := e.Stage("bothways")
	_, err := e.Admin.AppsV1().Deployments(namespace).Create(t.Context(), harness.Deployment(namespace, "both", 1, bothWays("bothways-node")), metav1.CreateOptions{})
	require.NoError(t, err)
	pod := e.RunningPod(namespace, "both")
	h := e.Start(e2e.ReloadRule("bothways"))
	e.Cloned("bothways", "used", "1")
	e.Settled(h)
	stamps, last := e.Stamps(namespace), e.Refreshes(namespace)[pod]

	e.Change("bothways", "unused", "2")
	last = e.Refreshed(namespace, pod, last)
	e.Restarted(namespace, stamps)

	// Its replacement never gets ready here, so the pod outlives the restart.
	e.Edit("bothways-src", "shared", func(s *corev1.Secret) { s.Data["used"], s.Data["unused"] = []byte("3"), []byte("3") })
	e.Restarted(namespace, stamps, "Deployment/both")
	e.Holds(e2e.Settle, func(context.Context) error {
		if now := e.Refreshes(namespace)[pod]; now != last {
			return fmt.Errorf("refreshed, although it is being replaced")
		}
		return nil
	})
}

func TestAPodOfACronJobFollowsWhatIsSaidOfTheCronJob(t *testing.T) {
	e := newEnv(t)
	e.Node("nightly-node")
	namespace := e.Stage("nightly")
	pods := map[string]string{}
	for name, annotations := range map[string]map[string]string{"silent": nil, "off": {mark.Reload: "Off"}} {
		template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}}, Spec: harness.ByVolume("shared")}
		template.Spec.NodeName, template.Spec.RestartPolicy = "nightly-node", corev1.RestartPolicyNever
		job := batchv1.JobSpec{Template: template}
		_, err := e.Admin.BatchV1().CronJobs(namespace).Create(t.Context(), &batchv1.CronJob{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
			Spec:       batchv1.CronJobSpec{Schedule: "0 0 1 1 *", JobTemplate: batchv1.JobTemplateSpec{Spec: job}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		// As it would be made on the first of January.
		_, err = e.Admin.BatchV1().Jobs(namespace).Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name + "-29401920"}, Spec: job}, metav1.CreateOptions{})
		require.NoError(t, err)
		pods[name] = e.RunningPod(namespace, name)
	}
	h := e.Start(e2e.ReloadRule("nightly"))
	e.Cloned("nightly", "used", "1")
	e.Settled(h)
	before := e.Refreshes(namespace)
	e.Change("nightly", "used", "2")
	e.Refreshed(namespace, pods["silent"], before[pods["silent"]])
	e.Settled(h)
	require.Empty(t, e.Refreshes(namespace)[pods["off"]])
}

func TestAPodThatARestartLetsBeIsRefreshed(t *testing.T) {
	e := newEnv(t)
	e.Node("paused-node")
	namespace := e.Stage("paused")
	_, err := e.Admin.AppsV1().Deployments(namespace).Create(t.Context(), harness.Deployment(namespace, "both", 1, bothWays("paused-node")), metav1.CreateOptions{})
	require.NoError(t, err)
	pod := e.RunningPod(namespace, "both")
	e.patched(namespace, "both", `{"spec":{"paused":true}}`)
	h := e.Start(e2e.ReloadRule("paused"))
	e.Cloned("paused", "used", "1")
	e.Settled(h)
	stamps, last := e.Stamps(namespace), e.Refreshes(namespace)[pod]

	e.Change("paused", "used", "2")
	e.Restarted(namespace, stamps, "Deployment/both") // for the pods that it makes some day
	e.Refreshed(namespace, pod, last)
}
