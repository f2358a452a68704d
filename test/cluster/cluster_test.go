package cluster

import (
	"context"
	"crypto/rand"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const testTimeout = 5 * time.Minute

func clientOf(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// unique lets a test run again on the shared cluster.
func unique(name string) string {
	return name + "-" + strings.ToLower(rand.Text())
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestTwoClustersSideBySide(t *testing.T) {
	first, second := Shared(t), ForTest(t, Options{})
	require.NotEqual(t, first.Config().Host, second.Config().Host)

	name := unique("only-in-first")
	firstClient, secondClient := clientOf(t, first.Config()), clientOf(t, second.Config())
	_, err := firstClient.CoreV1().ConfigMaps("default").Create(t.Context(), configMap(name), metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = secondClient.CoreV1().ConfigMaps("default").Get(t.Context(), name, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)

	stranger := second.Config()
	stranger.CAData = first.Config().CAData
	_, err = clientOf(t, stranger).Discovery().ServerVersion()
	require.ErrorContains(t, err, "certificate")
}

// ended is a test that is over once ends is called, and may have failed.
type ended struct {
	testing.TB

	failed bool
	ends   []func()
}

func (e *ended) Failed() bool { return e.failed }

func (e *ended) Cleanup(f func()) { e.ends = append(e.ends, f) }

func TestNoTestHasTheClusterOfOneThatFailed(t *testing.T) {
	shares := func(failed bool) *Cluster {
		test := &ended{TB: t, failed: failed}
		c := Shared(test)
		for _, end := range test.ends {
			end()
		}
		return c
	}
	passed, failed := shares(false), shares(true)
	require.Same(t, passed, failed, "a test that passed leaves its cluster to the next")
	_, err := clientOf(t, failed.Config()).Discovery().ServerVersion()
	require.Error(t, err, "it runs on")
	require.DirExists(t, failed.Dir())
	require.NotSame(t, failed, Shared(t))
}

func TestServerVersionIsTheOneOfTheModule(t *testing.T) {
	version, err := Version()
	require.NoError(t, err)
	require.Equal(t, "v1.36.3", version)

	got, err := clientOf(t, Shared(t).Config()).Discovery().ServerVersion()
	require.NoError(t, err)
	require.Equal(t, version, got.GitVersion)
	require.Equal(t, "1", got.Major)
	require.Equal(t, "36", got.Minor)
}

func TestKubeconfigLeadsToTheCluster(t *testing.T) {
	c := Shared(t)
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	require.NoError(t, err)
	require.False(t, config.Insecure)
	_, err = clientOf(t, config).CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	require.NoError(t, err)
}

func TestOthersHaveOnlyTheirOwnPermissions(t *testing.T) {
	c := Shared(t)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, c.KubeconfigFor(path, "system:serviceaccount:default:default"))
	fromFile, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)

	for name, config := range map[string]*rest.Config{"file": fromFile, "config": c.ConfigFor("somebody")} {
		_, err := clientOf(t, config).CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
		require.True(t, apierrors.IsForbidden(err), "%s: %v", name, err)
	}
	masters := clientOf(t, c.ConfigFor("somebody", mastersGroup))
	_, err = masters.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
}

func TestControllersWork(t *testing.T) {
	client := clientOf(t, Shared(t).Config())
	name := unique("none")
	labels := map[string]string{"app": name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "none", Image: "none"}}},
			},
		},
	}
	_, err := client.AppsV1().Deployments("default").Create(t.Context(), deployment, metav1.CreateOptions{})
	require.NoError(t, err)

	err = wait.PollUntilContextTimeout(t.Context(), pollInterval, testTimeout, true, func(ctx context.Context) (bool, error) {
		got, err := client.AppsV1().Deployments("default").Get(ctx, name, metav1.GetOptions{})
		return err == nil && got.Status.ObservedGeneration == got.Generation, err
	})
	require.NoError(t, err)
}

func TestSchedulerLooksAtPods(t *testing.T) {
	client := clientOf(t, Shared(t).Config())
	name := unique("homeless")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "none", Image: "none"}}},
	}
	_, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err, "Start waits until pods can be created")

	err = wait.PollUntilContextTimeout(t.Context(), pollInterval, testTimeout, true, func(ctx context.Context) (bool, error) {
		got, err := client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		return err == nil && len(got.Status.Conditions) > 0 && got.Status.Conditions[0].Reason == corev1.PodReasonUnschedulable, err
	})
	require.NoError(t, err)
}

func TestRestartsOfTheAPIServerKeepTheData(t *testing.T) {
	t.Parallel()
	c := ForTest(t, Options{})
	client := clientOf(t, c.Config())
	_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("kept"), metav1.CreateOptions{})
	require.NoError(t, err)
	before := c.PIDs()

	require.NoError(t, c.RestartAPIServer(t.Context()))
	_, err = client.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
	require.NoError(t, err)

	require.NoError(t, c.KillAPIServer())
	require.Error(t, c.KillAPIServer())
	_, err = client.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
	require.Error(t, err)
	require.NoError(t, c.StartAPIServer(t.Context()))
	require.Error(t, c.StartAPIServer(t.Context()))
	_, err = client.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
	require.NoError(t, err)

	after := c.PIDs()
	require.NotEqual(t, before[APIServer], after[APIServer])
	delete(before, APIServer)
	delete(after, APIServer)
	require.Equal(t, before, after, "the other components go on")
}

func TestTheHistoryHasEveryEditionInOrder(t *testing.T) {
	c := Shared(t)
	configMaps := clientOf(t, c.Config()).CoreV1().ConfigMaps("default")
	name := unique("past")
	created, err := configMaps.Create(t.Context(), configMap(name), metav1.CreateOptions{})
	require.NoError(t, err)
	created.Data = map[string]string{"k": "later"}
	updated, err := configMaps.Update(t.Context(), created, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, configMaps.Delete(t.Context(), name, metav1.DeleteOptions{}))

	from, err := strconv.ParseInt(created.ResourceVersion, 10, 64)
	require.NoError(t, err)
	all, next, err := c.History(t.Context(), from, "secrets", "configmaps")
	require.NoError(t, err)
	past := slices.DeleteFunc(all, func(v Edition) bool { return v.Name != name })
	require.Len(t, past, 3)
	require.Equal(t, from, past[0].Revision)
	require.Equal(t, updated.ResourceVersion, strconv.FormatInt(past[1].Revision, 10))
	later, ok := past[1].Object.(*corev1.ConfigMap)
	require.True(t, ok)
	require.Equal(t, "later", later.Data["k"])
	require.Nil(t, past[2].Object)
	require.Equal(t, Edition{Revision: past[2].Revision, Resource: "configmaps", Namespace: "default", Name: name}, past[2])

	rest, _, err := c.History(t.Context(), next, "configmaps")
	require.NoError(t, err)
	require.Empty(t, slices.DeleteFunc(rest, func(v Edition) bool { return v.Name != name }))
}

func TestADamagedObjectIsReadByNobodyUntilItIsTakenAway(t *testing.T) {
	c := Shared(t)
	configMaps := clientOf(t, c.Config()).CoreV1().ConfigMaps("default")
	before, err := configMaps.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	from, err := strconv.ParseInt(before.ResourceVersion, 10, 64)
	require.NoError(t, err)
	name := unique("damaged")
	require.NoError(t, c.Damage(t.Context(), "configmaps", "default", name))
	_, err = configMaps.List(t.Context(), metav1.ListOptions{})
	require.Error(t, err)
	require.NoError(t, c.Undamage(t.Context(), "configmaps", "default", name))
	require.Eventually(t, func() bool {
		_, err := configMaps.List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, time.Minute, 100*time.Millisecond)

	all, _, err := c.History(t.Context(), from, "configmaps")
	require.NoError(t, err, "the next test that has the cluster reads its history, too")
	for _, edition := range all {
		require.False(t, edition.Name == name && edition.Object != nil)
	}
}

func TestACompactedEtcdHasForgotten(t *testing.T) {
	t.Parallel()
	c := ForTest(t, Options{Log: t.Output()})
	configMaps := clientOf(t, c.Config()).CoreV1().ConfigMaps("default")
	created, err := configMaps.Create(t.Context(), configMap("forgotten"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, configMaps.Delete(t.Context(), "forgotten", metav1.DeleteOptions{}))
	require.NoError(t, c.CompactEtcd(t.Context()))
	require.NoError(t, c.CompactEtcd(t.Context()), "also when hardly anything was written since")
	from, err := strconv.ParseInt(created.ResourceVersion, 10, 64)
	require.NoError(t, err)
	_, _, err = c.History(t.Context(), from, "configmaps")
	require.ErrorContains(t, err, "from revision")
	metrics, err := c.EtcdMetrics(t.Context())
	require.NoError(t, err)
	require.Contains(t, metrics, "\netcd_mvcc_db_total_size_in_use_in_bytes ")
	require.Contains(t, metrics, "\netcd_disk_wal_write_bytes_total ")
}

func TestStartTakesOtherPortsWhenOneIsLost(t *testing.T) {
	for _, component := range []string{Etcd, APIServer} {
		t.Run(component, func(t *testing.T) {
			attempts := 0
			c := ForTest(t, Options{Log: t.Output(), findPorts: func() (ports, error) {
				found, err := freePorts()
				if attempts++; attempts == 1 {
					lost := map[string]int{Etcd: found.etcd, APIServer: found.apiServer}[component]
					listener, err := net.Listen("tcp", address(lost))
					require.NoError(t, err)
					t.Cleanup(func() { _ = listener.Close() })
				}
				return found, err
			}})
			require.Equal(t, 2, attempts)
			require.NotNil(t, c)
		})
	}
}

func TestAComponentThatEndsIsTold(t *testing.T) {
	t.Parallel()
	skipShort(t)
	_, err := Start(t.Context(), Options{Dir: filepath.Join(t.TempDir(), "cluster"), Args: map[string][]string{ControllerManager: {"--no-such-flag"}}})
	require.ErrorContains(t, err, "start the control plane: kube-controller-manager ended (exit status 1); its log is ")
	require.ErrorContains(t, err, "unknown flag: --no-such-flag")

	c, err := Start(t.Context(), Options{Dir: filepath.Join(t.TempDir(), "cluster")})
	require.NoError(t, err)
	scheduler, err := os.FindProcess(c.PIDs()[Scheduler])
	require.NoError(t, err)
	require.NoError(t, scheduler.Kill())
	select {
	case <-c.Done():
	case <-time.After(testTimeout):
		require.Fail(t, "nobody noticed")
	}
	require.ErrorContains(t, c.Stop(), "kube-scheduler ended (signal: killed)")
	require.ErrorContains(t, c.Stop(), "kube-scheduler ended (signal: killed)", "a second Stop is harmless")
	require.ErrorContains(t, c.RestartAPIServer(t.Context()), "stopped")
}

func TestStartSparesAFolderInUse(t *testing.T) {
	skipShort(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600))
	_, err := Start(t.Context(), Options{Dir: dir})
	require.ErrorContains(t, err, "is not empty")
	require.FileExists(t, filepath.Join(dir, "mine"))
}
