package reload

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/e2e"
	"github.com/headwater-k8s/headwater/test/harness"
)

// started plays the kubelet of the pods of a workload.
func (e *env) started(ctx context.Context, namespace, name string) error {
	pods, err := e.Admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		return err
	}
	var failed error
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodPending {
			failed = errors.Join(failed, harness.SetRunning(ctx, e.Admin, pod))
		}
	}
	return failed
}

// rolledOut plays the kubelet until the Deployment is rolled out.
func (e *env) rolledOut(namespace, name string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		failed := e.started(ctx, namespace, name)
		d := e.read(namespace, name)
		if s := d.Status; s.ObservedGeneration < d.Generation || s.UpdatedReplicas < *d.Spec.Replicas ||
			s.Replicas > s.UpdatedReplicas || s.AvailableReplicas < *d.Spec.Replicas {
			return fmt.Errorf("not rolled out: %+v (%w)", s, failed)
		}
		return nil
	})
}

// serving makes a Deployment of so many pods that run.
func (e *env) serving(namespace, name string, replicas int32, spec corev1.PodSpec) {
	e.Helper()
	_, err := e.Admin.AppsV1().Deployments(namespace).Create(e.Context(), harness.Deployment(namespace, name, replicas, spec), metav1.CreateOptions{})
	require.NoError(e, err)
	e.rolledOut(namespace, name)
}

// rollouts are how many pod templates a Deployment had so far.
func (e *env) rollouts(namespace, name string) int {
	e.Helper()
	sets, err := e.Admin.AppsV1().ReplicaSets(namespace).List(e.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	require.NoError(e, err)
	return len(sets.Items)
}

// adoptedAnew waits until the baseline is another than before.
func (e *env) adoptedAnew(namespace, name, before string) {
	e.Helper()
	e.Eventually(func(context.Context) error {
		if e.read(namespace, name).Annotations[mark.Baseline] == before {
			return errors.New("the baseline is as before")
		}
		return nil
	})
}

// newImage is the patch of an owner who deploys another version.
const newImage = `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"app:2"}]}}}}`

// lateTemplate is the patch of an owner whose new pods wait for a node that late
// gives them.
const lateTemplate = `{"spec":{"template":{"spec":{"nodeSelector":{"late":"yes"}}}}}`

// late has pods of lateTemplate be bound to node.
func (e *env) late(node string) {
	e.Helper()
	_, err := e.Admin.CoreV1().Nodes().Patch(e.Context(), node, types.MergePatchType, []byte(`{"metadata":{"labels":{"late":"yes"}}}`), metav1.PatchOptions{})
	require.NoError(e, err)
}

// updated waits until the Deployment has a pod of its new template.
func (e *env) updated(namespace, name string) {
	e.Helper()
	e.Eventually(func(context.Context) error {
		if e.read(namespace, name).Status.UpdatedReplicas == 0 {
			return errors.New("no new pod yet")
		}
		return nil
	})
}

func TestAChangeBeforeANewVersionMakesOneRollout(t *testing.T) {
	e := newEnv(t)
	e.Node("before-node")
	namespace := e.Stage("before")
	rule := pacedRule("before", "debounce: 2s, minInterval: 0s")
	h := e.Start(rule)
	e.Cloned("before", "used", "1")
	e.serving(namespace, "web", 2, harness.ByEnv("shared", "used"))
	e.Settled(h)
	adopted := e.read(namespace, "web").Annotations[mark.Baseline]

	e.Change("before", "used", "2")
	e.Cloned("before", "used", "2")
	e.patched(namespace, "web", newImage)
	e.Waits(h, 1, "owner")
	e.rolledOut(namespace, "web")
	e.adoptedAnew(namespace, "web", adopted)
	e.Waits(h, 0, "owner")
	e.Settled(h)
	require.Equal(t, 2, e.rollouts(namespace, "web"))
	require.Empty(t, e.Stamps(namespace)["Deployment/web"])

	e.Change("before", "used", "3") // what it runs is on record
	e.Restarted(namespace, map[string]string{}, "Deployment/web")
	require.Equal(t, 3, e.rollouts(namespace, "web"))
}

func TestANewVersionBeforeAChangeMakesOneRolloutIfNoPodHasStarted(t *testing.T) {
	e := newEnv(t)
	e.Node("after-node")
	e.Node("after-late")
	namespace := e.Stage("after")
	h := e.Start(e2e.ReloadRule("after"))
	e.Cloned("after", "used", "1")
	e.serving(namespace, "web", 2, harness.ByEnv("shared", "used"))
	e.Settled(h)
	adopted := e.read(namespace, "web").Annotations[mark.Baseline]

	e.patched(namespace, "web", lateTemplate)
	e.updated(namespace, "web")
	e.Change("after", "used", "2")
	e.Waits(h, 1, "owner")
	require.Contains(t, e.HasEvent(namespace, "web", "RestartWaits"), "a rollout in progress")
	e.SecondLater()
	e.late("after-late")
	e.rolledOut(namespace, "web")
	e.adoptedAnew(namespace, "web", adopted)
	e.Settled(h)
	require.Equal(t, 2, e.rollouts(namespace, "web"))
	require.Empty(t, e.Stamps(namespace)["Deployment/web"])
}

// newPodBound waits until the Deployment has a second pod, and a node for it.
func (e *env) newPodBound(namespace, name string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		pods, err := e.Admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil || len(pods.Items) != 2 || pods.Items[0].Spec.NodeName == "" || pods.Items[1].Spec.NodeName == "" {
			return fmt.Errorf("the new pod has no node yet (%w)", err)
		}
		return nil
	})
}

func TestANewVersionWhosePodsStartedBeforeTheChangeIsRestarted(t *testing.T) {
	e := newEnv(t)
	e.Node("started-node")
	namespace := e.Stage("started")
	h := e.Start(e2e.ReloadRule("started"))
	e.Cloned("started", "used", "1")
	e.serving(namespace, "web", 1, harness.ByEnv("shared", "used"))
	e.Settled(h)
	before := e.Stamps(namespace)
	e.patched(namespace, "web", newImage)
	e.newPodBound(namespace, "web")
	e.Change("started", "used", "2") // it may have read what was there
	e.Restarted(namespace, before, "Deployment/web")
	e.rolledOut(namespace, "web")
	require.Equal(t, 3, e.rollouts(namespace, "web"))
}

// The API server notes no time for a write that only removes keys: the data
// looks older than the pods that started without it.
func TestAKeyThatIsOnlyRemovedRestartsPodsThatStartedWithIt(t *testing.T) {
	e := newEnv(t)
	e.Node("removed-node")
	namespace := e.Stage("removed")
	e.Secret(namespace, "own", map[string]string{"a": "1", "b": "1"})
	h := e.Start(e2e.ReloadRule("removed"))
	e.SecondLater()
	e.serving(namespace, "web", 1, harness.ByEnvFrom("own"))
	e.patched(namespace, "web", `{"metadata":{"annotations":{"headwater.dev/reload":"Auto"}}}`)
	e.adoptedAnew(namespace, "web", "")
	e.Settled(h)
	e.SecondLater()

	before := e.Stamps(namespace)
	e.Edit(namespace, "own", func(s *corev1.Secret) { delete(s.Data, "b") })
	e.Restarted(namespace, before, "Deployment/web")
}

// A rollout is not taken to have delivered what changed after its pods started,
// because something changed before.
func TestAKeyThatIsRemovedAmidARolloutRestartsPodsThatStartedWithIt(t *testing.T) {
	e := newEnv(t)
	e.Node("amid-node")
	e.Node("amid-late")
	namespace := e.Stage("amid")
	e.Secret(namespace, "own", map[string]string{"used": "1", "unused": "1"})
	h := e.Start(e2e.ReloadRule("amid"))
	e.Cloned("amid", "used", "1")
	workloads := []string{"by-owner", "by-rule"}
	e.serving(namespace, "by-owner", 1, harness.ByEnvFrom("own"))
	e.serving(namespace, "by-rule", 1, harness.ByEnvFrom("shared"))
	e.patched(namespace, "by-owner", `{"metadata":{"annotations":{"headwater.dev/reload":"Auto"}}}`)
	for _, name := range workloads {
		e.adoptedAnew(namespace, name, "")
	}
	e.Settled(h)
	before := e.Stamps(namespace)

	for _, name := range workloads {
		e.patched(namespace, name, lateTemplate)
		e.updated(namespace, name)
	}
	e.Change("amid", "used", "2")
	e.SetKey(namespace, "own", "used", "2")
	e.Waits(h, 2, "owner")
	e.SecondLater()
	e.late("amid-late")
	for _, name := range workloads {
		e.newPodBound(namespace, name)
	}
	e.SecondLater()
	unused := func(s *corev1.Secret) { delete(s.Data, "unused") }
	e.Edit("amid-src", "shared", unused)
	e.Edit(namespace, "own", unused)
	e.HasClone(namespace, "shared", map[string]string{"used": "2"})
	for _, name := range workloads {
		e.rolledOut(namespace, name)
	}
	e.Restarted(namespace, before, "Deployment/by-owner", "Deployment/by-rule")
}

func TestOnlySoManyWorkloadsRollOutAtATimeSmallestFirst(t *testing.T) {
	e := newEnv(t)
	e.Node("limit-node")
	namespace := e.Stage("limit")
	e.Sections = "reload: {maxConcurrentRollouts: 1}\n"
	e.serving(namespace, "occupant", 1, harness.ByEnv("shared", "unused"))
	replicas := map[string]int32{"large": 3, "middle": 2, "small": 1}
	for name, n := range replicas {
		e.serving(namespace, name, n, harness.ByEnv("shared", "used"))
	}
	e.Deployment(namespace, "nothing", harness.ByEnv("shared", "used"), nil)
	h := e.StartAlone(e2e.ReloadRule("limit"))
	e.Cloned("limit", "used", "1")
	e.Settled(h)
	before := e.Stamps(namespace)

	e.Change("limit", "unused", "2")
	done := []string{"Deployment/occupant"}
	e.Restarted(namespace, before, done...)
	e.Change("limit", "used", "2")
	done = append(done, "Deployment/nothing") // it has no pods to wait for
	e.Restarted(namespace, before, done...)
	e.Waits(h, 3, "rollouts")

	h.Kill() // the next leader counts what it finds
	h = e.StartAlone(e2e.ReloadRule("limit"))
	e.Waits(h, 3, "rollouts")
	e.Restarted(namespace, before, done...)
	e.rolledOut(namespace, "occupant")
	for _, name := range []string{"small", "middle", "large"} {
		done = append(done, "Deployment/"+name)
		e.Restarted(namespace, before, done...)
		e.rolledOut(namespace, name)
	}
	e.Waits(h, 0, "rollouts")
}

// forging makes a Deployment that never gets on, and that says of itself that
// Headwater restarted it at that time.
func (e *env) forging(namespace, name string, restartedAt time.Time) {
	e.Helper()
	deployment := harness.Deployment(namespace, name, 1, harness.ByEnv("own", "used"))
	deployment.Annotations = map[string]string{mark.Reload: "Auto", mark.RestartedAt: mark.FormatTime(restartedAt)}
	_, err := e.Admin.AppsV1().Deployments(namespace).Create(e.Context(), deployment, metav1.CreateOptions{})
	require.NoError(e, err)
}

func TestForgedRestartsTakeThePlacesOfNobodyElse(t *testing.T) {
	e := newEnv(t)
	e.Node("forged-node")
	namespace := e.Stage("forged")
	e.serving(namespace, "web", 1, harness.ByEnv("shared", "used"))
	early, late := e.Namespace("forging-early"), e.Namespace("forging-late")
	for _, name := range []string{"a", "b", "c"} {
		e.forging(early, name, time.Now())
		e.forging(early, "ahead-"+name, time.Now().AddDate(70, 0, 0))
	}
	e.Secret(late, "own", map[string]string{"used": "1"})
	e.Sections = "reload: {maxConcurrentRollouts: 2, maxConcurrentRolloutsPerNamespace: 1}\n"
	h := e.Start(e2e.ReloadRule("forged"))
	e.Cloned("forged", "used", "1")
	e.forging(late, "now", time.Now())
	e.adoptedAnew(late, "now", "") // it was seen
	e.Settled(h)
	before := e.Stamps(namespace)

	e.Change("forged", "used", "2")
	e.Restarted(namespace, before, "Deployment/web")
}
