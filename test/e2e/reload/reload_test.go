// Package reload holds the end-to-end tests of restarts and refreshes: which
// workloads a change reaches, when, and how often.
package reload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

// Invariant 6, and what a change does after it.
func TestEnvConsumersOfEveryKindAreRestartedOnce(t *testing.T) {
	e, namespace := newStage(t, "kinds")
	byEnv := lab.ByEnv("shared", "used")
	e.Create(namespace, lab.StatefulSet(namespace, "set", 0, byEnv))
	e.Create(namespace, lab.DaemonSet(namespace, "daemon", byEnv))
	e.Create(namespace, lab.CronJob(namespace, "cron", byEnv))
	initial := lab.ByNothing()
	initial.InitContainers = lab.ByEnvFrom("shared").Containers
	initial.InitContainers[0].Name = "init"
	subPath := lab.ByVolume("shared")
	subPath.Containers[0].VolumeMounts[0].SubPath = "used"
	for name, spec := range map[string]corev1.PodSpec{
		"by-env": lab.ByEnv("shared", "used"), "by-env-from": lab.ByEnvFrom("shared"), "by-init": initial,
		"by-sub-path": subPath, "by-volume": lab.ByVolume("shared"), "by-nothing": lab.ByNothing(),
		"other-key": lab.ByEnv("shared", "unused"), "other-secret": lab.ByEnvFrom("unmanaged"),
	} {
		e.Deployment(namespace, name, spec, nil)
	}
	e.Deployment(namespace, "switched-off", lab.ByEnvFrom("shared"), map[string]string{mark.Reload: "Off"})
	h := e.Reloads("kinds")
	e.Settled(h)
	before := e.Stamps(namespace)
	for name, stamp := range before {
		require.Empty(t, stamp, "first sight is never a change: %s", name)
	}
	e.Change("kinds", "used", "2")
	e.Restarted(namespace, before,
		"CronJob/cron", "DaemonSet/daemon", "StatefulSet/set", "Deployment/by-env", "Deployment/by-env-from", "Deployment/by-init", "Deployment/by-sub-path")
	e.HasEvent(namespace, "by-env", "Restarted")
	require.Contains(t, e.HasEvent(namespace, "cron", "Restarted"), "No Job is created for the change")
	jobs := lab.List(t, e.Admin.BatchV1().Jobs(namespace).List, metav1.ListOptions{})
	require.Empty(t, jobs.Items, "a CronJob is stamped, and never run")
}

// onRecord is a namespace with Deployment by-env, of which it is on record that it
// runs the first value.
func (e *env) onRecord(prefix string) (namespace string, h *lab.Headwater, before map[string]string) {
	e.Helper()
	namespace = e.Stage(prefix)
	e.Deployment(namespace, "by-env", lab.ByEnv("shared", "used"), nil)
	h = e.Start(lab.ReloadRule(prefix))
	e.Cloned(prefix, "used", "1")
	e.Settled(h)
	return namespace, h, e.Stamps(namespace)
}

// Invariant 8.
func TestWhatNobodyConsumesRestartsNothing(t *testing.T) {
	e := newEnv(t)
	namespace, _, before := e.onRecord("idle")
	e.Change("idle", "unused", "2")
	e.Cloned("idle", "unused", "2")
	e.Restarted(namespace, before)
	e.Edit("idle-src", "shared", func(s *corev1.Secret) { s.Labels = map[string]string{"new": "label"} })
	e.Restarted(namespace, before)
	require.NoError(t, e.Admin.CoreV1().Secrets(namespace).Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	e.Cloned("idle", "used", "1")
	e.Restarted(namespace, before) // a clone that comes back as it was is no change
	e.Change("idle", "used", "2")
	e.Restarted(namespace, before, "Deployment/by-env")
}

// Invariant 7.
func TestAChangeMissedWhileDownIsActedOn(t *testing.T) {
	e, namespace := newStage(t, "missed")
	e.Deployment(namespace, "by-env", lab.ByEnv("shared", "used"), nil)
	e.Deployment(namespace, "other-key", lab.ByEnv("shared", "unused"), nil)
	h := e.Reloads("missed")
	e.Settled(h)
	before := e.Stamps(namespace)
	h.Stop()
	e.Change("missed", "used", "2")
	h = e.Start(lab.ReloadRule("missed"))
	e.Restarted(namespace, before, "Deployment/by-env")
	e.Settled(h)
}

// The leader keeps the key in memory, so that deleting its Secret loses nothing.
func TestADigestKeyDeletedAtWorkIsPutBackAndNoChangeIsLost(t *testing.T) {
	e := newEnv(t)
	namespace, h, before := e.onRecord("keptkey")
	stored := func(ctx context.Context) (*corev1.Secret, error) {
		return e.Admin.CoreV1().Secrets(lab.Namespace).Get(ctx, digestkey.SecretName, metav1.GetOptions{})
	}
	made, err := stored(e.Context())
	require.NoError(t, err)
	e.without(lab.Namespace, digestkey.SecretName)
	e.Eventually(func(ctx context.Context) error {
		again, err := stored(ctx)
		if err == nil && again.UID == made.UID {
			return errors.New("it is not deleted yet")
		}
		return err
	})
	putBack, err := stored(t.Context())
	require.NoError(t, err)
	require.True(t, maps.EqualFunc(made.Data, putBack.Data, bytes.Equal), "another key was made")

	h.Stop()
	e.Change("keptkey", "used", "2")
	h = e.Start(lab.ReloadRule("keptkey"))
	e.Restarted(namespace, before, "Deployment/by-env")
	e.Settled(h)
}

// Invariant 6. While anybody leads, the key is not lost.
func TestALostDigestKeyRestartsNothing(t *testing.T) {
	e := newEnv(t)
	namespace, h, before := e.onRecord("lostkey")

	h.Stop()
	e.without(lab.Namespace, digestkey.SecretName)
	h = e.Start(lab.ReloadRule("lostkey"))
	e.Settled(h)
	e.Restarted(namespace, before)
	require.Contains(t, e.HasEvent(namespace, "by-env", "BaselineAdopted"), "the key it was made with is gone")
	e.Change("lostkey", "used", "2")
	e.Restarted(namespace, before, "Deployment/by-env")
}

// Invariant 6.
func TestABaselineOfAnotherFormatRestartsNothing(t *testing.T) {
	e, namespace := newStage(t, "format")
	versions := []string{"v0", "v1", "v3"}
	for _, version := range versions {
		e.Deployment(namespace, version, lab.ByEnv("shared", "used"), nil)
	}
	h := e.Reloads("format")
	e.Settled(h)
	before, written := e.Stamps(namespace), map[string]string{}
	h.Stop()
	for _, version := range versions {
		written[version] = e.read(namespace, version).Annotations[mark.Baseline]
		_, sums, versioned := strings.Cut(written[version], ":")
		require.True(t, versioned)
		e.patched(namespace, version, fmt.Sprintf(`{"metadata":{"annotations":{%q:"%s:%s"}}}`, mark.Baseline, version, sums))
	}
	h = e.Start(lab.ReloadRule("format"))
	e.Settled(h)
	e.Restarted(namespace, before)
	for _, version := range versions {
		e.HasEvent(namespace, version, "BaselineAdopted")
		require.Equal(t, written[version], e.read(namespace, version).Annotations[mark.Baseline], "written again")
	}
	e.Change("format", "used", "2")
	e.Restarted(namespace, before, "Deployment/v0", "Deployment/v1", "Deployment/v3")
}

func TestANewReferenceIsAdopted(t *testing.T) {
	e := newEnv(t)
	namespace, h, before := e.onRecord("newref")
	deployment := lab.Read(t, e.Admin.AppsV1().Deployments(namespace).Get, "by-env")
	deployment.Spec.Template.Spec = lab.ByEnvFrom("shared") // its owner rolls it out themselves
	_, err := e.Admin.AppsV1().Deployments(namespace).Update(t.Context(), deployment, metav1.UpdateOptions{})
	require.NoError(t, err)
	e.Settled(h)
	e.Restarted(namespace, before)
	e.Change("newref", "unused", "2")
	e.Restarted(namespace, before, "Deployment/by-env")
}

func TestRunningPodsThatMountItAreRefreshed(t *testing.T) {
	e, namespace := newStage(t, "volume")
	e.Node("volume-node")
	e.Eventually(func(ctx context.Context) error {
		_, err := e.Admin.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	subPath := lab.ByVolume("shared")
	subPath.Containers[0].VolumeMounts[0].SubPath = "used"
	for name, spec := range map[string]corev1.PodSpec{
		"mounts": lab.ByVolume("shared"), "by-env": lab.ByEnvFrom("shared"), "sub-path": subPath,
		"finished": lab.ByVolume("shared"), "unbound": lab.ByVolume("shared"),
	} {
		if name != "unbound" {
			spec.NodeName = "volume-node"
		} else {
			spec.NodeSelector = map[string]string{"no": "such-node"}
		}
		pod, err := e.Admin.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec,
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		switch name {
		case "finished":
			pod.Status.Phase = corev1.PodSucceeded
			_, err = e.Admin.CoreV1().Pods(namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
		case "unbound":
		default:
			err = lab.SetRunning(t.Context(), e.Admin, pod)
		}
		require.NoError(t, err)
	}
	h := e.Reloads("volume")
	e.Settled(h)
	before := e.Refreshes(namespace)
	e.Change("volume", "used", "2")
	refreshed := func(context.Context) error {
		var got []string
		now := e.Refreshes(namespace)
		for _, name := range slices.Sorted(maps.Keys(now)) {
			if now[name] != before[name] {
				got = append(got, name)
			}
		}
		return lab.ErrorIf(!slices.Equal(got, []string{"mounts"}), "refreshed: %v", got)
	}
	e.Eventually(refreshed)
	e.Stays(refreshed)
}

// Invariant 3.
func TestOneFailingWorkloadNeverDelaysAnother(t *testing.T) {
	e, namespace := newStage(t, "failing")
	e.Deployment(namespace, "a-refused", lab.ByEnv("shared", "used"), nil)
	e.Deployment(namespace, "b-open", lab.ByEnv("shared", "used"), nil)
	h := e.Reloads("failing")
	e.Settled(h)
	before := e.Stamps(namespace)
	allow := e.RefuseUpdatesOf(namespace, "a-refused")
	e.Change("failing", "used", "2")
	e.Restarted(namespace, before, "Deployment/b-open")
	allow()
	e.Restarted(namespace, before, "Deployment/a-refused", "Deployment/b-open")
}

// A clone may appear and change again within the debounce, and its consumer have
// started on what was there first.
func TestTheFirstSightIsNotDebounced(t *testing.T) {
	e, namespace := newStage(t, "rightafter")
	e.Deployment(namespace, "by-env", lab.ByEnv("shared", "used"), nil)
	h := e.Start(pacedRule("rightafter", "debounce: 10m, minInterval: 0s"))
	before := e.Adopted(h, namespace, "by-env")
	e.ConfigFile(lab.ReloadRule("rightafter"))
	e.HasMetric(h, 1, "headwater_config_reloads_total", map[string]string{"result": "applied"})
	e.Change("rightafter", "used", "2")
	e.Restarted(namespace, before, "Deployment/by-env")
	e.Settled(h)
}

// newStage is newEnv with the namespaces and the source of lab.ReloadRule.
func newStage(t *testing.T, prefix string) (e *env, namespace string) {
	t.Helper()
	e = newEnv(t)
	return e, e.Stage(prefix)
}

// onNode is newStage with a node for pods.
func onNode(t *testing.T, prefix string) (e *env, namespace string) {
	t.Helper()
	e = newEnv(t)
	e.Node(prefix + "-node")
	return e, e.Stage(prefix)
}
