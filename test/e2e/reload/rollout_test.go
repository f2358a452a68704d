package reload

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

// started plays the kubelet of the pods of a workload.
func (e *env) started(ctx context.Context, namespace, name string) error {
	return lab.PlayPods(ctx, e.Admin, "status.phase=Pending,metadata.namespace="+namespace, func(_ context.Context, pod *corev1.Pod) (lab.Health, error) {
		if pod.Labels["app"] != name {
			return lab.Waits, nil
		}
		return lab.Runs, nil
	})
}

// rolledOut plays the kubelet until the Deployment is rolled out.
func (e *env) rolledOut(namespace, name string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		failed := e.started(ctx, namespace, name)
		if err := lab.RolledOut(e.read(namespace, name)); err != nil {
			return fmt.Errorf("%w (%w)", err, failed)
		}
		return nil
	})
}

// serving makes a Deployment of so many pods that run.
func (e *env) serving(namespace, name string, replicas int32, spec corev1.PodSpec) {
	e.Helper()
	e.Create(namespace, lab.Deployment(namespace, name, replicas, spec))
	e.rolledOut(namespace, name)
}

// rollouts are how many pod templates a Deployment had so far.
func (e *env) rollouts(namespace, name string) int {
	e.Helper()
	sets := lab.List(e, e.Admin.AppsV1().ReplicaSets(namespace).List, metav1.ListOptions{LabelSelector: "app=" + name})
	return len(sets.Items)
}

// adoptedAnew waits until the baseline is another than before.
func (e *env) adoptedAnew(namespace, name, before string) {
	e.Helper()
	e.Eventually(func(context.Context) error {
		return lab.ErrorIf(e.read(namespace, name).Annotations[mark.Baseline] == before, "the baseline is as before")
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
		d := e.read(namespace, name)
		return lab.ErrorIf(d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas == 0, "no new pod yet")
	})
}

func TestAChangeBeforeANewVersionMakesOneRollout(t *testing.T) {
	e, namespace := onNode(t, "before")
	h := e.Start(pacedRule("before", "debounce: 10m, minInterval: 0s"))
	e.Cloned("before", "used", "1")
	e.serving(namespace, "web", 2, lab.ByEnv("shared", "used"))
	e.Settled(h)
	adopted := e.read(namespace, "web").Annotations[mark.Baseline]

	e.Change("before", "used", "2")
	e.Cloned("before", "used", "2")
	e.Settled(h) // it has seen the change before the new version, which it watches apart
	e.patched(namespace, "web", newImage)
	e.Settled(h) // it has seen that by the end of the debounce
	e.ConfigFile(pacedRule("before", "debounce: 0s, minInterval: 0s"))
	e.Waits(h, 1, "owner")
	e.rolledOut(namespace, "web")
	e.adoptedAnew(namespace, "web", adopted)
	e.Waits(h, 0, "owner")
	e.Settled(h)
	require.Equal(t, 2, e.rollouts(namespace, "web"))
	require.Empty(t, e.Stamps(namespace)["Deployment/web"])

	e.Change("before", "used", "3") // what it runs is on record
	e.Restarted(namespace, map[string]string{}, "Deployment/web")
	e.rolledOut(namespace, "web")
	require.Equal(t, 3, e.rollouts(namespace, "web"))
}

func TestANewVersionBeforeAChangeMakesOneRolloutIfNoPodHasStarted(t *testing.T) {
	e := newEnv(t)
	e.Node("after-node")
	e.Node("after-late")
	namespace := e.Stage("after")
	h := e.Reloads("after")
	e.serving(namespace, "web", 2, lab.ByEnv("shared", "used"))
	e.Settled(h)
	adopted := e.read(namespace, "web").Annotations[mark.Baseline]

	e.patched(namespace, "web", lateTemplate)
	e.updated(namespace, "web")
	e.Settled(h) // it has seen that
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
		return lab.ErrorIf(err != nil || len(pods.Items) != 2 || pods.Items[0].Spec.NodeName == "" || pods.Items[1].Spec.NodeName == "", "the new pod has no node yet (%w)", err)
	})
}

func TestANewVersionWhosePodsStartedBeforeTheChangeIsRestarted(t *testing.T) {
	e, namespace := onNode(t, "started")
	h := e.Reloads("started")
	e.serving(namespace, "web", 1, lab.ByEnv("shared", "used"))
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
	e, namespace := onNode(t, "removed")
	e.Secret(namespace, "own", map[string]string{"a": "1", "b": "1"})
	h := e.Start(lab.ReloadRule("removed"))
	e.SecondLater()
	e.serving(namespace, "web", 1, lab.ByEnvFrom("own"))
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
	h := e.Reloads("amid")
	workloads := []string{"by-owner", "by-rule"}
	e.serving(namespace, "by-owner", 1, lab.ByEnvFrom("own"))
	e.serving(namespace, "by-rule", 1, lab.ByEnvFrom("shared"))
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
	e.Settled(h) // it has seen that
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
	e, namespace := onNode(t, "limit")
	e.Sections = "reload: {maxConcurrentRollouts: 1}\n"
	e.serving(namespace, "occupant", 1, lab.ByEnv("shared", "unused"))
	replicas := map[string]int32{"large": 3, "middle": 2, "small": 1}
	for name, n := range replicas {
		e.serving(namespace, name, n, lab.ByEnv("shared", "used"))
	}
	e.Deployment(namespace, "nothing", lab.ByEnv("shared", "used"), nil)
	h := e.StartAlone(lab.ReloadRule("limit"))
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
	h = e.StartAlone(lab.ReloadRule("limit"))
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
	deployment := lab.Deployment(namespace, name, 1, lab.ByEnv("own", "used"))
	deployment.Annotations = map[string]string{mark.Reload: "Auto", mark.RestartedAt: mark.FormatTime(restartedAt)}
	e.Create(namespace, deployment)
}

func TestForgedRestartsTakeThePlacesOfNobodyElse(t *testing.T) {
	e, namespace := onNode(t, "forged")
	e.serving(namespace, "web", 1, lab.ByEnv("shared", "used"))
	early, late := e.Namespace("forging-early"), e.Namespace("forging-late")
	for _, name := range []string{"a", "b", "c"} {
		e.forging(early, name, time.Now())
		e.forging(early, "ahead-"+name, time.Now().AddDate(70, 0, 0))
	}
	e.Secret(late, "own", map[string]string{"used": "1"})
	e.Sections = "reload: {maxConcurrentRollouts: 2, maxConcurrentRolloutsPerNamespace: 1}\n"
	h := e.Reloads("forged")
	e.adoptedAnew(namespace, "web", "") // a leader at its start counts what is restarted by then
	e.forging(late, "now", time.Now())
	e.adoptedAnew(late, "now", "") // it was seen
	e.Settled(h)
	before := e.Stamps(namespace)

	e.Change("forged", "used", "2")
	e.Restarted(namespace, before, "Deployment/web")
}
