//go:build node

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
	"github.com/headwater-k8s/headwater/test/node"
)

// runChild makes the test binary a process that holds a cluster, a node and a
// pod on it, in the folder that it is given, until somebody ends it.
const runChild = "HEADWATER_TEST_NODE_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(runChild); dir != "" {
		if err := hold(dir); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func hold(dir string) error {
	ctx := context.Background()
	c, err := cluster.Start(ctx, cluster.Options{Dir: dir})
	if err != nil {
		return err
	}
	n, err := node.Start(ctx, c, node.Options{})
	if err != nil {
		return err
	}
	admin, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	if _, err := runPod(ctx, admin, n); err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(n.PID()); err != nil {
		return err
	}
	<-c.Done()
	return errors.New("the cluster ended")
}

// runPod runs a pod with a mount of its own.
func runPod(ctx context.Context, admin kubernetes.Interface, n *node.Node) (container *node.Container, err error) {
	pods := admin.CoreV1().Pods(metav1.NamespaceDefault)
	if _, err := admin.CoreV1().Secrets(metav1.NamespaceDefault).Create(ctx, lab.Secret("", "shared", map[string]string{"password": "first"}), metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	if _, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod"}, Spec: lab.ByVolume("shared")}, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	err = lab.Eventually(ctx, func(ctx context.Context) error {
		pod, err := pods.Get(ctx, "pod", metav1.GetOptions{})
		if err != nil {
			return err
		}
		container, err = n.Container(pod, "app")
		return err
	})
	return container, err
}

// running is one process, that no other can be taken for later.
type running struct {
	pid              int
	started, program string
}

// processes are all of the machine, by parent; without those that have ended and
// that nobody has waited for yet.
func processes(t *testing.T) map[int][]running {
	t.Helper()
	byParent := map[int][]running{}
	entries, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, path := range entries {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		// https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
		before, after, _ := strings.Cut(string(content), ") ")
		id, program, _ := strings.Cut(before, " (")
		fields := strings.Fields(after)
		pid, err := strconv.Atoi(id)
		require.NoError(t, err)
		parent, err := strconv.Atoi(fields[1])
		require.NoError(t, err)
		if fields[0] != "Z" {
			byParent[parent] = append(byParent[parent], running{pid, fields[19], program})
		}
	}
	return byParent
}

// family is all that a process started.
func family(t *testing.T, pid int) []running {
	t.Helper()
	byParent := processes(t)
	all := slices.Clone(byParent[pid])
	for i := 0; i < len(all); i++ {
		all = append(all, byParent[all[i].pid]...)
	}
	return all
}

func programs(all []running) (names []string) {
	for _, one := range all {
		names = append(names, one.program)
	}
	return names
}

// left are those of all that still run.
func left(t *testing.T, all []running) []running {
	t.Helper()
	now := slices.Concat(slices.Collect(maps.Values(processes(t)))...)
	return slices.DeleteFunc(slices.Clone(all), func(one running) bool { return !slices.Contains(now, one) })
}

// controlGroups are those of a container, in either version of them.
func controlGroups(t *testing.T, container string) (groups []string) {
	t.Helper()
	for _, pattern := range []string{"/sys/fs/cgroup/k8s.io/", "/sys/fs/cgroup/*/k8s.io/"} {
		found, err := filepath.Glob(pattern + container)
		require.NoError(t, err)
		groups = append(groups, found...)
	}
	return groups
}

func mounts(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	return string(content)
}

// whole is what runs on a node with a pod: sleep is the container, and what
// keeps its sandbox.
var whole = []string{"containerd", "kubelet", "containerd-shim", "sleep"}

func TestNothingIsLeftOfANodeThatWasStopped(t *testing.T) {
	before := mounts(t)
	e := newEnv(t)
	container, err := runPod(t.Context(), e.Admin, e.node)
	require.NoError(t, err)
	all := family(t, e.node.PID())
	require.Subset(t, programs(all), whole)
	require.Equal(t, before, mounts(t), "its mounts are its own")
	require.NotEmpty(t, controlGroups(t, container.ID))

	require.NoError(t, e.node.Stop())
	require.Empty(t, left(t, all))
	require.Empty(t, controlGroups(t, container.ID))
}

func TestNoNodeOutlivesAKilledProcess(t *testing.T) {
	t.Parallel()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), runChild+"="+filepath.Join(t.TempDir(), "cluster"))
	child.Stderr = t.Output()
	stdout, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	var pid int
	require.NoError(t, json.NewDecoder(stdout).Decode(&pid), "the child tells its node when a pod runs there")
	all := family(t, pid)
	require.Subset(t, programs(all), whole)

	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())
	require.NoError(t, lab.Eventually(t.Context(), func(context.Context) error {
		if left := left(t, all); len(left) > 0 {
			return fmt.Errorf("still there: %v", left)
		}
		return nil
	}))
}

func TestTheEndOfANodeIsTold(t *testing.T) {
	t.Parallel()
	c := cluster.ForTest(t, cluster.Options{})
	n, err := node.Start(t.Context(), c, node.Options{Name: "short-lived"})
	require.NoError(t, err)
	all := family(t, n.PID())
	require.Contains(t, programs(all), cluster.Kubelet)
	kubelet := slices.Index(programs(all), cluster.Kubelet)
	require.NoError(t, syscall.Kill(all[kubelet].pid, syscall.SIGKILL))

	select {
	case <-n.Done():
	case <-time.After(lab.Timeout):
		require.Fail(t, "it runs on without its kubelet")
	}
	require.ErrorContains(t, n.Stop(), "containerd or the kubelet ended")
}
