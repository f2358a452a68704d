package reload

import (
	"context"
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

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/e2e"
	"github.com/headwater-k8s/headwater/test/harness"
)

// reloadRule clones Secret shared of PREFIX-src into PREFIX-a and reloads its
// consumers there, without a debounce to wait for.
func reloadRule(prefix string) string {
	return strings.ReplaceAll(`
- name: PREFIX
  source: {kind: Secret, namespace: PREFIX-src, name: shared}
  sync: {namespaces: {include: [PREFIX-a]}}
  reload: {debounce: 0s, minInterval: 0s}
`, "PREFIX", prefix)
}

// stage makes the namespaces and the source of reloadRule.
func (e *env) stage(prefix string) (namespace string) {
	e.Helper()
	e.Namespace(prefix + "-src")
	e.Secret(prefix+"-src", "shared", map[string]string{"used": "1", "unused": "1"})
	return e.Namespace(prefix + "-a")
}

// change edits one key of the source of reloadRule.
func (e *env) change(prefix, key, value string) {
	e.Helper()
	e.Edit(prefix+"-src", "shared", func(s *corev1.Secret) { s.Data[key] = []byte(value) })
}

// cloned waits until the clone of reloadRule has that value.
func (e *env) cloned(prefix, key, value string) {
	e.Helper()
	e.Eventually(func(context.Context) error {
		clone := e.Get(prefix+"-a", "shared")
		if clone == nil || string(clone.Data[key]) != value {
			return fmt.Errorf("the clone is not current")
		}
		return nil
	})
}

// Invariant 6, and what a change does after it.
func TestEnvConsumersOfEveryKindAreRestartedOnce(t *testing.T) {
	e := newEnv(t)
	namespace := e.stage("kinds")
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
	h := e.Start(reloadRule("kinds"))
	e.cloned("kinds", "used", "1")
	e.Settled(h)
	before := e.Stamps(namespace)
	for name, stamp := range before {
		require.Empty(t, stamp, "first sight is never a change: %s", name)
	}
	e.change("kinds", "used", "2")
	e.Restarted(namespace, before,
		"CronJob/cron", "DaemonSet/daemon", "StatefulSet/set", "Deployment/by-env", "Deployment/by-env-from", "Deployment/by-init", "Deployment/by-sub-path")
	e.HasEvent(namespace, "by-env", "Restarted")
	e.HasEvent(namespace, "cron", "Restarted")
	jobs, err := e.Admin.BatchV1().Jobs(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, jobs.Items, "a CronJob is stamped, and never run")
}

// Invariant 8.
func TestWhatNobodyConsumesRestartsNothing(t *testing.T) {
	e := newEnv(t)
	namespace := e.stage("idle")
	e.Deployment(namespace, "by-env", harness.ByEnv("shared", "used"), nil)
	h := e.Start(reloadRule("idle"))
	e.cloned("idle", "used", "1")
	e.Settled(h)
	before := e.Stamps(namespace)
	e.change("idle", "unused", "2")
	e.cloned("idle", "unused", "2")
	e.Restarted(namespace, before)
	e.Edit("idle-src", "shared", func(s *corev1.Secret) { s.Labels = map[string]string{"new": "label"} })
	e.Restarted(namespace, before)
	require.NoError(t, e.Admin.CoreV1().Secrets(namespace).Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	e.cloned("idle", "used", "1")
	e.Restarted(namespace, before) // a clone that comes back as it was is no change
	e.change("idle", "used", "2")
	e.Restarted(namespace, before, "Deployment/by-env")
}

// Invariant 7.
func TestAChangeMissedWhileDownIsActedOn(t *testing.T) {
	e := newEnv(t)
	namespace := e.stage("missed")
	e.Deployment(namespace, "by-env", harness.ByEnv("shared", "used"), nil)
	e.Deployment(namespace, "other-key", harness.ByEnv("shared", "unused"), nil)
	h := e.Start(reloadRule("missed"))
	e.cloned("missed", "used", "1")
	e.Settled(h)
	before := e.Stamps(namespace)
	h.Stop()
	e.change("missed", "used", "2")
	h = e.Start(reloadRule("missed"))
	e.Restarted(namespace, before, "Deployment/by-env")
	e.Settled(h)
}

// Invariant 6.
func TestALostDigestKeyRestartsNothing(t *testing.T) {
	e := newEnv(t)
	namespace := e.stage("lostkey")
	e.Deployment(namespace, "by-env", harness.ByEnv("shared", "used"), nil)
	h := e.Start(reloadRule("lostkey"))
	e.cloned("lostkey", "used", "1")
	e.Settled(h)
	before := e.Stamps(namespace)
	h.Stop()
	require.NoError(t, e.Admin.CoreV1().Secrets(harness.Namespace).Delete(t.Context(), "headwater-digest-key", metav1.DeleteOptions{}))
	h = e.Start(reloadRule("lostkey"))
	e.Settled(h)
	e.Restarted(namespace, before)
	e.HasEvent(namespace, "by-env", "BaselineAdopted")
	e.change("lostkey", "used", "2")
	e.Restarted(namespace, before, "Deployment/by-env")
}

func TestANewReferenceIsAdopted(t *testing.T) {
	e := newEnv(t)
	namespace := e.stage("newref")
	e.Deployment(namespace, "by-env", harness.ByEnv("shared", "used"), nil)
	h := e.Start(reloadRule("newref"))
	e.cloned("newref", "used", "1")
	e.Settled(h)
	before := e.Stamps(namespace)
	deployment, err := e.Admin.AppsV1().Deployments(namespace).Get(t.Context(), "by-env", metav1.GetOptions{})
	require.NoError(t, err)
	deployment.Spec.Template.Spec = harness.ByEnvFrom("shared") // its owner rolls it out themselves
	_, err = e.Admin.AppsV1().Deployments(namespace).Update(t.Context(), deployment, metav1.UpdateOptions{})
	require.NoError(t, err)
	e.Settled(h)
	e.Restarted(namespace, before)
	e.change("newref", "unused", "2")
	e.Restarted(namespace, before, "Deployment/by-env")
}

func TestRunningPodsThatMountItAreRefreshed(t *testing.T) {
	e := newEnv(t)
	namespace := e.stage("volume")
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
	h := e.Start(reloadRule("volume"))
	e.cloned("volume", "used", "1")
	e.Settled(h)
	before := e.refreshes(namespace)
	e.change("volume", "used", "2")
	refreshed := func(context.Context) error {
		var got []string
		now := e.refreshes(namespace)
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

// refreshes are the refreshed-for annotations of all pods in namespace.
func (e *env) refreshes(namespace string) map[string]string {
	e.Helper()
	pods, err := e.Admin.CoreV1().Pods(namespace).List(e.Context(), metav1.ListOptions{})
	require.NoError(e, err)
	refreshes := map[string]string{}
	for _, pod := range pods.Items {
		refreshes[pod.Name] = pod.Annotations[mark.RefreshedFor]
	}
	return refreshes
}

// Invariant 3.
func TestOneFailingWorkloadNeverDelaysAnother(t *testing.T) {
	e := newEnv(t)
	namespace := e.stage("failing")
	e.Deployment(namespace, "a-refused", harness.ByEnv("shared", "used"), nil)
	e.Deployment(namespace, "b-open", harness.ByEnv("shared", "used"), nil)
	h := e.Start(reloadRule("failing"))
	e.cloned("failing", "used", "1")
	e.Settled(h)
	before := e.Stamps(namespace)
	e.RefuseUpdatesOf(namespace, "a-refused")
	e.change("failing", "used", "2")
	e.Restarted(namespace, before, "Deployment/b-open")
	e.AllowUpdates()
	e.Restarted(namespace, before, "Deployment/a-refused", "Deployment/b-open")
}

// A clone may appear and change again within the debounce, and its consumer have
// started on what was there first.
func TestTheFirstSightIsNotDebounced(t *testing.T) {
	e := newEnv(t)
	namespace := e.stage("rightafter")
	e.Deployment(namespace, "by-env", harness.ByEnv("shared", "used"), nil)
	h := e.Start(strings.ReplaceAll(reloadRule("rightafter"), "debounce: 0s", "debounce: 8s"))
	e.cloned("rightafter", "used", "1")
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
	e.change("rightafter", "used", "2")
	e.Restarted(namespace, before, "Deployment/by-env")
	e.Settled(h)
}
