//go:build node

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/test/lab"
)

// rest is a namespace of the last stage; team is the canary.
const rest = "rest"

// deliveredRule delivers the Secret of that name to the canary, then to the rest.
func deliveredRule(name string) string {
	return fmt.Sprintf(`
- name: %[1]s
  source: {kind: Secret, namespace: platform, name: %[1]s}
  sync:
    namespaces: {include: [team, rest]}
    delivery:
      stages: [{name: canary, namespaces: {selector: {matchLabels: {stage: canary}}}, soak: 5s}]
      gate: {consumers: Healthy, timeout: 1m}
      onFailure: Rollback
  reload: {debounce: 0s, minInterval: 0s}
`, name)
}

const (
	// runByEnv writes down the limit that it starts with, and ends at once if it is 0.
	runByEnv = `echo "$VALUE" >>/written/limits; [ "$VALUE" -gt 0 ] && exec sleep infinity`
	// runByFile writes down every limit that its file has.
	runByFile = `while true; do
if now=$(cat /shared/limit) && [ "$now" != "$last" ]; then echo "$now" >>/written/limits; last=$now; fi
usleep 50000
done`
)

// The names are those of a Secret, of the rule that delivers it, and of the
// Deployment that reads it in each namespace.
const (
	crashes  = "crashes"
	notReady = "not-ready"
	noImage  = "no-image"
)

func limitReaders() map[string]corev1.PodSpec {
	byEnv := lab.ByEnv(crashes, "limit")
	byEnv.Containers[0].Command = []string{"sh", "-c", runByEnv}
	byFile := lab.ByVolume(notReady)
	byFile.Containers[0].Command = []string{"sh", "-c", runByFile}
	byFile.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", `[ "$(cat /shared/limit)" -gt 0 ]`}}},
		PeriodSeconds: 1, FailureThreshold: 1, TimeoutSeconds: 20,
	}
	withImage := lab.ByEnv(noImage, "limit")
	withImage.Containers[0].Command = []string{"sh", "-c", runByEnv}
	return map[string]corev1.PodSpec{crashes: byEnv, notReady: byFile, noImage: withImage}
}

// TestADeliveryStopsOnlyForWhatItBreaks has three deliveries at once, whose containers
// write down every limit that they read.
func TestADeliveryStopsOnlyForWhatItBreaks(t *testing.T) {
	e := newEnv(t)
	e.namespace(platform)
	e.namespace(team, "stage=canary")
	e.namespace(rest)
	var rules string
	for name := range limitReaders() {
		e.Secret(platform, name, map[string]string{"limit": "100"})
		rules += deliveredRule(name)
	}
	h := e.Start(rules)
	for name, spec := range limitReaders() {
		e.Verdict(name, "1", revisions.Delivered)
		e.SecondLater() // so that it is known which value a pod started with
		e.deployWriter(rest, name, spec)
		if name == noImage {
			// No registry listens there.
			spec.Containers[0].Image, spec.Containers[0].ImagePullPolicy = "127.0.0.1:1/missing:1", corev1.PullIfNotPresent
		}
		e.deployWriter(team, name, spec)
	}
	for name := range limitReaders() {
		e.wroteDown(rest, name, "100\n")
	}
	e.cannotPull(team, noImage)
	e.available(crashes)
	e.available(notReady)
	e.SettledFor(h, settle)
	canary, other := e.runs(team, notReady), e.runs(rest, crashes)

	e.Edit(platform, noImage, func(s *corev1.Secret) { s.Data["limit"] = []byte("200") })
	for _, name := range []string{crashes, notReady} {
		e.Edit(platform, name, func(s *corev1.Secret) { s.Data["limit"] = []byte("0") })
	}
	t.Run("a container that crashes", func(t *testing.T) {
		e := e.of(t)
		require.Contains(t, e.Verdict(crashes, "2", revisions.Rejected), "team/Deployment/crashes (CrashLoopBackOff")
		e.takenBack(crashes)
		e.reads(team, crashes, "100", variable("VALUE"))
		e.available(crashes)
		require.Contains(t, e.written(team, crashes), "\n0\n")
		e.wroteDown(rest, crashes, "100\n")
		require.Equal(t, other.ID, e.runs(rest, crashes).ID, "it was not restarted")
	})
	t.Run("a refreshed pod that does not get ready again", func(t *testing.T) {
		e := e.of(t)
		require.Contains(t, e.Verdict(notReady, "2", revisions.Rejected), "team/Deployment/not-ready (")
		e.takenBack(notReady)
		e.wroteDown(team, notReady, "100\n0\n100\n")
		e.available(notReady)
		require.Equal(t, canary.ID, e.runs(team, notReady).ID, "it was refreshed, not restarted")
		e.wroteDown(rest, notReady, "100\n")
	})
	t.Run("a pod whose image could not be pulled before is no evidence", func(t *testing.T) {
		e := e.of(t)
		e.Verdict(noImage, "2", revisions.Delivering)
		e.wroteDown(rest, noImage, "100\n")
		e.cannotPull(team, noImage)
	})
}

// of is e in a test within e's.
func (e *env) of(t *testing.T) *env {
	t.Helper()
	within := *e.Env
	within.T = t
	return &env{Env: &within, node: e.node}
}

// takenBack waits until the canary's clone is at revision 1 again.
func (e *env) takenBack(name string) {
	e.Helper()
	e.HasClone(team, name, map[string]string{"limit": "100"})
	require.Equal(e, "1", e.Get(team, name).Annotations[mark.Revision])
}

// deployWriter deploys containers that write below a folder which outlives them.
func (e *env) deployWriter(namespace, name string, spec corev1.PodSpec) {
	e.Helper()
	folder := filepath.Dir(e.limits(namespace, name))
	require.NoError(e, os.MkdirAll(folder, 0o755))
	spec = *spec.DeepCopy()
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "written", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder}}})
	spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "written", MountPath: "/written"})
	e.deploy(namespace, name, spec)
}

func (e *env) limits(namespace, name string) string {
	return filepath.Join(e.Dir, namespace, name, "limits")
}

// written is what the containers of a Deployment have written down so far.
func (e *env) written(namespace, name string) string {
	e.Helper()
	content, err := os.ReadFile(e.limits(namespace, name))
	require.NoError(e, err)
	return string(content)
}

// wroteDown waits until the containers of a Deployment have written down exactly that.
func (e *env) wroteDown(namespace, name, want string) {
	e.Helper()
	e.Eventually(func(context.Context) error {
		content, err := os.ReadFile(e.limits(namespace, name))
		if err == nil && string(content) != want {
			err = fmt.Errorf("%s in %s has read %q, not %q", name, namespace, content, want)
		}
		return err
	})
}

// cannotPull waits until the kubelet says of every pod of a Deployment that it cannot
// pull the image.
func (e *env) cannotPull(namespace, name string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		pods, err := e.Admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil {
			return err
		}
		for _, pod := range pods.Items {
			cannot := slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
				return c.State.Waiting != nil && slices.Contains([]string{"ErrImagePull", "ImagePullBackOff"}, c.State.Waiting.Reason)
			})
			if !cannot {
				return fmt.Errorf("pod %s: %+v", pod.Name, pod.Status.ContainerStatuses)
			}
		}
		return lab.ErrorIf(len(pods.Items) == 0, "there is no pod yet")
	})
}
