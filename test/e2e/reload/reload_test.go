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
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/e2e"
	"github.com/headwater-k8s/headwater/test/harness"
)

// Invariant 6, and what a change does after it.
func TestEnvConsumersOfEveryKindAreRestartedOnce(t *testing.T) {
	e := newEnv(t)
	namespace := e.Stage("kinds")
	template := harness.Deployment(namespace, "x", 0, harness.ByEnv("shared", "used"))
	selector, pod := template.Spec.Selector, template.Spec.Template
	_, err := e.Admin.AppsV1().StatefulSets(namespace).Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "set"},
		Spec:       appsv1.StatefulSetSpec{Replicas: new(int32), Selector: selector, Template: pod},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = e.Admin.AppsV1().DaemonSets(namespace).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "daemon"},
		Spec:       appsv1.DaemonSetSpec{Selector: selector, Template: pod},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	job := pod
	job.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err = e.Admin.BatchV1().CronJobs(namespace).Create(t.Context(), &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "cron"},
		Spec: batchv1.CronJobSpec{
			Schedule: "0 0 30 2 *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: job}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	initial := harness.ByNothing()
	initial.InitContainers = harness.ByEnvFrom("shared").Containers
	initial.InitContainers[0].Name = "init"
	subPath := harness.ByVolume("shared")
	subPath.Containers[0].VolumeMounts[0].SubPath = "used"
	for name, spec := range map[string]corev1.PodSpec{
		"by-env": harness.ByEnv("shared", "used"), "by-env-from": harness.ByEnvFrom("shared"), "by-init": initial,
		"by-sub-path": subPath, "by-volume": harness.ByVolume("shared"), "by-nothing": harness.ByNothing(),
		"other-key": harness.ByEnv("shared", "unused"), "other-secret": harness.ByEnvFrom("unmanaged"),
	} {
		e.Deployment(namespace, name, spec, nil)
	}
	e.Deployment(namespace, "switched-off", harness.ByEnvFrom("shared"), map[string]string{mark.Reload: "Off"})
	h := e.Start(e2e.ReloadRule("kinds"))
	e.Cloned("kinds", "used", "1")
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
	jobs, err := e.Admin.BatchV1().Jobs(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, jobs.Items, "a CronJob is stamped, and never run")
}

// onRecord is a namespace with Deployment by-env, of which it is on record that it
// runs the first value.
func (e *env) onRecord(prefix string) (namespace string, h *harness.Headwater, before map[string]string) {
	e.Helper()
	namespace = e.Stage(prefix)
	e.Deployment(namespace, "by-env", harness.ByEnv("shared", "used"), nil)
	h = e.Start(e2e.ReloadRule(prefix))
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
	e := newEnv(t)
	namespace := e.Stage("missed")
	e.Deployment(namespace, "by-env", harness.ByEnv("shared", "used"), nil)
	e.Deployment(namespace, "other-key", harness.ByEnv("shared", "unused"), nil)
	h := e.Start(e2e.ReloadRule("missed"))
	e.Cloned("missed", "used", "1")
	e.Settled(h)
	before := e.Stamps(namespace)
	h.Stop()
	e.Change("missed", "used", "2")
	h = e.Start(e2e.ReloadRule("missed"))
	e.Restarted(namespace, before, "Deployment/by-env")
	e.Settled(h)
}

// The leader keeps the key in memory, so that deleting its Secret loses nothing.
func TestADigestKeyDeletedAtWorkIsPutBackAndNoChangeIsLost(t *testing.T) {
	e := newEnv(t)
	namespace, h, before := e.onRecord("keptkey")
	stored := func(ctx context.Context) (*corev1.Secret, error) {
		return e.Admin.CoreV1().Secrets(harness.Namespace).Get(ctx, digestkey.SecretName, metav1.GetOptions{})
	}
	made, err := stored(e.Context())
	require.NoError(t, err)
	e.without(harness.Namespace, digestkey.SecretName)
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
	h = e.Start(e2e.ReloadRule("keptkey"))
	e.Restarted(namespace, before, "Deployment/by-env")
	e.Settled(h)
}

// Invariant 6. While anybody leads, the key is not lost.
func TestALostDigestKeyRestartsNothing(t *testing.T) {
	e := newEnv(t)
	namespace, h, before := e.onRecord("lostkey")

	h.Stop()
	e.without(harness.Namespace, digestkey.SecretName)
	h = e.Start(e2e.ReloadRule("lostkey"))
	e.Settled(h)
	e.Restarted(namespace, before)
	require.Contains(t, e.HasEvent(namespace, "by-env", "BaselineAdopted"), "the key it was made with is gone")
	e.Change("lostkey", "used", "2")
	e.Restarted(namespace, before, "Deployment/by-env")
}

// Invariant 6.
func TestABaselineOfAnotherFormatRestartsNothing(t *testing.T) {
	e := newEnv(t)
	namespace := e.Stage("format")
	versions := []string{"v0", "v1", "v3"}
	for _, version := range versions {
		e.Deployment(namespace, version, harness.ByEnv("shared", "used"), nil)
	}
	h := e.Start(e2e.ReloadRule("format"))
	e.Cloned("format", "used", "1")
	e.Settled(h)
	before, written := e.Stamps(namespace), map[string]string{}
	h.Stop()
	for _, version := range versions {
		written[version] = e.read(namespace, version).Annotations[mark.Baseline]
		_, sums, versioned := strings.Cut(written[version], ":")
		require.True(t, versioned)
		e.patched(namespace, version, fmt.Sprintf(`{"metadata":{"annotations":{%q:"%s:%s"}}}`, mark.Baseline, version, sums))
	}
	h = e.Start(e2e.ReloadRule("format"))
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
	deployment, err := e.Admin.AppsV1().Deployments(namespace).Get(t.Context(), "by-env", metav1.GetOptions{})
	require.NoError(t, err)
	deployment.Spec.Template.Spec = harness.ByEnvFrom("shared") // its owner rolls it out themselves
	_, err = e.Admin.AppsV1().Deployments(namespace).Update(t.Context(), deployment, metav1.UpdateOptions{})
	require.NoError(t, err)
	e.Settled(h)
	e.Restarted(namespace, before)
	e.Change("newref", "unused", "2")
	e.Restarted(namespace, before, "Deployment/by-env")
}

func TestRunningPodsThatMountItAreRefreshed(t *testing.T) {
	e := newEnv(t)
	namespace := e.Stage("volume")
	e.Node("volume-node")
	e.Eventually(func(ctx context.Context) error {
		_, err := e.Admin.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	subPath := harness.ByVolume("shared")
	subPath.Containers[0].VolumeMounts[0].SubPath = "used"
	for name, spec := range map[string]corev1.PodSpec{
		"mounts": harness.ByVolume("shared"), "by-env": harness.ByEnvFrom("shared"), "sub-path": subPath,
		"finished": harness.ByVolume("shared"), "unbound": harness.ByVolume("shared"),
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
			err = harness.SetRunning(t.Context(), e.Admin, pod)
		}
		require.NoError(t, err)
	}
	h := e.Start(e2e.ReloadRule("volume"))
	e.Cloned("volume", "used", "1")
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
		if !slices.Equal(got, []string{"mounts"}) {
			return fmt.Errorf("refreshed: %v", got)
		}
		return nil
	}
	e.Eventually(refreshed)
	e.Holds(e2e.Settle, refreshed)
}

// Invariant 3.
func TestOneFailingWorkloadNeverDelaysAnother(t *testing.T) {
	e := newEnv(t)
	namespace := e.Stage("failing")
	e.Deployment(namespace, "a-refused", harness.ByEnv("shared", "used"), nil)
	e.Deployment(namespace, "b-open", harness.ByEnv("shared", "used"), nil)
	h := e.Start(e2e.ReloadRule("failing"))
	e.Cloned("failing", "used", "1")
	e.Settled(h)
	before := e.Stamps(namespace)
	e.RefuseUpdatesOf(namespace, "a-refused")
	e.Change("failing", "used", "2")
	e.Restarted(namespace, before, "Deployment/b-open")
	e.AllowUpdates()
	e.Restarted(namespace, before, "Deployment/a-refused", "Deployment/b-open")
}

// A clone may appear and change again within the debounce, and its consumer have
// started on what was there first.
func TestTheFirstSightIsNotDebounced(t *testing.T) {
	e := newEnv(t)
	namespace := e.Stage("rightafter")
	e.Deployment(namespace, "by-env", harness.ByEnv("shared", "used"), nil)
	h := e.Start(strings.ReplaceAll(e2e.ReloadRule("rightafter"), "debounce: 0s", "debounce: 8s"))
	e.Cloned("rightafter", "used", "1")
	before := e.Stamps(namespace)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // well within the debounce
	defer cancel()
	require.NoError(t, harness.Eventually(ctx, func(ctx context.Context) error {
		deployment, err := e.Admin.AppsV1().Deployments(namespace).Get(ctx, "by-env", metav1.GetOptions{})
		if err == nil && deployment.Annotations[mark.Baseline] == "" {
			err = fmt.Errorf("not adopted yet")
		}
		return err
	}))
	e.Change("rightafter", "used", "2")
	e.Restarted(namespace, before, "Deployment/by-env")
	e.Settled(h)
}
