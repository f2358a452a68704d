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
	"github.com/headwater-k8s/headwater/test/lab"
)

// bothWays reads key used of Secret shared into the environment, and mounts all
// of them, on that node.
func bothWays(node string) corev1.PodSpec {
	spec := lab.ByVolume("shared")
	spec.Containers[0].Env = lab.ByEnv("shared", "used").Containers[0].Env
	spec.NodeName = node
	return spec
}

func TestAPodThatAlsoMountsItIsRestartedOrRefreshedByTheKey(t *testing.T) {
	e, namespace := onNode(t, "bothways")
	e.Create(namespace, lab.Deployment(namespace, "both", 1, bothWays("bothways-node")))
	pod := e.RunningPod(namespace, "both")
	h := e.Reloads("bothways")
	e.Settled(h)
	stamps, last := e.Stamps(namespace), e.Refreshes(namespace)[pod]

	e.Change("bothways", "unused", "2")
	last = e.Refreshed(namespace, pod, last)
	e.Restarted(namespace, stamps)

	// Its replacement never gets ready here, so the pod outlives the restart.
	e.Edit("bothways-src", "shared", func(s *corev1.Secret) { s.Data["used"], s.Data["unused"] = []byte("3"), []byte("3") })
	e.Restarted(namespace, stamps, "Deployment/both")
	e.Stays(func(context.Context) error {
		if now := e.Refreshes(namespace)[pod]; now != last {
			return fmt.Errorf("refreshed, although it is being replaced")
		}
		return nil
	})
}

func TestAPodOfACronJobFollowsWhatIsSaidOfTheCronJob(t *testing.T) {
	e, namespace := onNode(t, "nightly")
	pods := map[string]string{}
	for name, annotations := range map[string]map[string]string{"silent": nil, "off": {mark.Reload: "Off"}} {
		template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}}, Spec: lab.ByVolume("shared")}
		template.Spec.NodeName, template.Spec.RestartPolicy = "nightly-node", corev1.RestartPolicyNever
		job := batchv1.JobSpec{Template: template}
		e.Create(namespace, &batchv1.CronJob{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
			Spec:       batchv1.CronJobSpec{Schedule: "0 0 1 1 *", JobTemplate: batchv1.JobTemplateSpec{Spec: job}},
		})
		// As it would be made on the first of January.
		e.Create(namespace, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name + "-29401920"}, Spec: job})
		pods[name] = e.RunningPod(namespace, name)
	}
	h := e.Reloads("nightly")
	e.Settled(h)
	before := e.Refreshes(namespace)
	e.Change("nightly", "used", "2")
	e.Refreshed(namespace, pods["silent"], before[pods["silent"]])
	e.Settled(h)
	require.Empty(t, e.Refreshes(namespace)[pods["off"]])
}

func TestAPodThatARestartLetsBeIsRefreshed(t *testing.T) {
	e, namespace := onNode(t, "paused")
	e.Create(namespace, lab.Deployment(namespace, "both", 1, bothWays("paused-node")))
	pod := e.RunningPod(namespace, "both")
	e.patched(namespace, "both", `{"spec":{"paused":true}}`)
	h := e.Reloads("paused")
	e.Settled(h)
	stamps, last := e.Stamps(namespace), e.Refreshes(namespace)[pod]

	e.Change("paused", "used", "2")
	e.Restarted(namespace, stamps, "Deployment/both") // for the pods that it makes some day
	e.Refreshed(namespace, pod, last)
}
