//go:build node

package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
	"github.com/headwater-k8s/headwater/test/node"
)

// A kubelet keeps an immutable object until no pod of its node reads it, whatever
// takes its name meanwhile: new containers have the old data as well while they
// overlap with the old ones, and Headwater can but say so.
func TestAnImmutableObjectThatIsMadeAnewIsReadOnceNoOldPodIsLeft(t *testing.T) {
	e := newEnv(t)
	e.namespace(platform)
	e.namespace(team)
	immutable := func(s *corev1.Secret) { s.Immutable = new(true) }
	e.Secret(platform, "shared", map[string]string{"password": "first"})
	e.Edit(platform, "shared", immutable)
	h := e.Start(sharedRule("{minInterval: 0s}"))
	looks, before := map[string]func(*node.Container) (string, error){}, map[string]*node.Container{}
	for _, name := range []string{"by-volume", "by-env"} {
		looks[name] = consumers[name].look
		spec := consumers[name].spec
		// Without a grace period a pod is gone before its kubelet is done with it.
		spec.TerminationGracePeriodSeconds = new(int64(1))
		e.deploy(team, name, spec)
	}
	for name, look := range looks {
		before[name] = e.reads(team, name, "first", look)
	}
	e.SettledFor(h, settle)

	require.NoError(t, e.Admin.CoreV1().Secrets(platform).Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	e.Secret(platform, "shared", map[string]string{"password": "second"})
	for name := range looks {
		require.Contains(t, e.HasEvent(team, name, "MayReadOldData"), "scaling to 0 and back")
	}
	e.SettledFor(h, settle)
	for name, look := range looks {
		e.available(name)
		require.NotEqual(t, before[name].ID, e.reads(team, name, "first", look).ID, "%s was restarted", name)
	}

	for _, replicas := range []int32{0, 1} {
		for name := range looks {
			e.scale(name, replicas)
		}
	}
	for name, look := range looks {
		before[name] = e.reads(team, name, "second", look)
		e.available(name)
	}
	e.SettledFor(h, settle)

	e.Edit(platform, "shared", func(s *corev1.Secret) { s.Data["password"] = []byte("third") })
	require.Equal(t, before["by-volume"].ID, e.reads(team, "by-volume", "third", looks["by-volume"]).ID, "it was let go of, and is refreshed")
	require.NotEqual(t, before["by-env"].ID, e.reads(team, "by-env", "third", looks["by-env"]).ID)
}

// scale waits until there are so many pods, and no other.
func (e *env) scale(name string, replicas int32) {
	e.Helper()
	_, err := e.Admin.AppsV1().Deployments(team).Patch(e.Context(), name, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{})
	require.NoError(e, err)
	e.Eventually(func(ctx context.Context) error {
		pods, err := e.Admin.CoreV1().Pods(team).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
		if err == nil && len(pods.Items) != int(replicas) {
			err = fmt.Errorf("%s has %d pods, not %d", name, len(pods.Items), replicas)
		}
		return err
	})
}

func TestAnOptionalObjectThatComesLaterIsRead(t *testing.T) {
	e := newEnv(t)
	e.namespace(platform)
	e.namespace(team)
	h := e.Start(sharedRule("{}"))
	byVolume, byEnv := lab.ByVolume("shared"), lab.ByEnv("shared", "password")
	byVolume.Volumes[0].Secret.Optional = new(true)
	byEnv.Containers[0].Env[0].ValueFrom.SecretKeyRef.Optional = new(true)
	e.deploy(team, "by-volume", byVolume)
	e.deploy(team, "by-env", byEnv)
	mounting := e.runs(team, "by-volume")
	reading := e.runs(team, "by-env")
	e.available("by-volume")
	e.available("by-env")
	e.SettledFor(h, settle)

	e.Secret(platform, "shared", map[string]string{"password": "first"})
	require.Equal(t, mounting.ID, e.reads(team, "by-volume", "first", file("/shared/password")).ID, "the same container finds it")
	require.NotEqual(t, reading.ID, e.reads(team, "by-env", "first", variable("VALUE")).ID, "a new container reads it")
}

func newEnvOn(t *testing.T, on *cluster.Cluster, options node.Options) *env {
	t.Helper()
	e := &env{Env: lab.On(t, on)}
	e.Plain() // containers are compared with what the test wrote
	var err error
	e.node, err = node.Start(t.Context(), e.Cluster, options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.node.Stop()) })
	return e
}
