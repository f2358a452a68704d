package kinds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/e2e"
	"github.com/headwater-k8s/headwater/test/harness"
)

// rolledOut plays the controller of the kind, which has replaced all pods.
func (k kind) rolledOut(namespace, name string) {
	k.Helper()
	object, err := k.object(k.Context(), namespace, name)
	require.NoError(k, err)
	replicas, _, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
	require.NoError(k, err)
	k.says(namespace, name, object.GetGeneration(), replicas, replicas)
}

// says has the status be that of a controller that has seen that generation. A
// Rollout's is a text.
func (k kind) says(namespace, name string, observed, replicas, updated int64) {
	k.Helper()
	generation := fmt.Sprint(observed)
	if k.name == "Rollout" {
		generation = fmt.Sprintf("'%d'", observed)
	}
	k.merge(namespace, name, fmt.Sprintf("status: {observedGeneration: %s, replicas: %d, updatedReplicas: %d, availableReplicas: %d}",
		generation, replicas, updated, replicas), "status")
}

// stamps are the names of the objects whose pod template is stamped, in order.
func (k kind) stamps(ctx context.Context, namespace string) (names []string, err error) {
	list, err := k.Dynamic().Resource(k.GroupVersionResource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, object := range list.Items {
		_, found, err := unstructured.NestedString(object.Object, "spec", "template", "metadata", "annotations", mark.RestartedFor)
		if err != nil {
			return nil, err
		}
		if found {
			names = append(names, object.GetName())
		}
	}
	return names, nil
}

func TestOnlySoManyOfWhateverKindRollOutAtATime(t *testing.T) {
	e := newEnv(t)
	namespace := e.Stage("counted")
	rollouts, apps := e.kind("argoproj.io", "v1alpha1", "Rollout"), e.kind("example.com", "v1", "App")
	rollouts.install()
	apps.install()
	apps.grant()
	kinds := map[string]kind{"occupant": rollouts, "small": apps, "middle": rollouts, "large": apps}
	for name, replicas := range map[string]int{"occupant": 1, "small": 1, "middle": 2, "large": 3} {
		template := podReading
		if name == "occupant" {
			template = strings.Replace(podReading, "key: used", "key: unused", 1)
		}
		kinds[name].create(namespace, name, fmt.Sprintf("spec: {replicas: %d, template: %s}", replicas, template))
		kinds[name].rolledOut(namespace, name)
	}
	e.Sections = "reload: {maxConcurrentRollouts: 1, workloads: [{group: example.com, version: v1, kind: App}]}\n"
	h := e.Start(e2e.ReloadRule("counted"))
	e.Cloned("counted", "used", "1")
	for name, kind := range kinds {
		kind.adopted(namespace, name)
	}
	e.Settled(h)
	exactly := func(want ...string) {
		t.Helper()
		want = slices.Sorted(slices.Values(want))
		stamped := func(ctx context.Context) error {
			of, err := rollouts.stamps(ctx, namespace)
			more, other := apps.stamps(ctx, namespace)
			if of = append(of, more...); err != nil || other != nil {
				return errors.Join(err, other)
			}
			if slices.Sort(of); !slices.Equal(of, want) {
				return fmt.Errorf("restarted: %v; should be: %v", of, want)
			}
			return nil
		}
		e.Eventually(stamped)
		e.Holds(e2e.Settle, stamped)
	}

	e.Change("counted", "unused", "2")
	done := []string{"occupant"}
	exactly(done...)
	e.Change("counted", "used", "2")
	e.Waits(h, 3, "rollouts")
	exactly(done...)
	for _, next := range []string{"small", "middle", "large"} {
		last := done[len(done)-1]
		kinds[last].rolledOut(namespace, last)
		done = append(done, next)
		exactly(done...)
	}
	e.Waits(h, 0, "rollouts")
}

// replicaSet makes one as Argo's controller does for a Rollout, and waits until
// its pods have nodes.
func (e *env) replicaSet(namespace, rollout, hash string, replicas int32) {
	e.Helper()
	like := harness.Deployment(namespace, rollout, replicas, harness.ByEnv("shared", "used"))
	labels := map[string]string{"app": rollout, "rollouts-pod-template-hash": hash}
	like.Spec.Template.Labels = labels
	_, err := e.Admin.AppsV1().ReplicaSets(namespace).Create(e.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: rollout + "-" + hash},
		Spec:       appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: like.Spec.Template},
	}, metav1.CreateOptions{})
	require.NoError(e, err)
	e.Eventually(func(ctx context.Context) error {
		pods, err := e.Admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "rollouts-pod-template-hash=" + hash})
		if err != nil {
			return err
		}
		bound := 0
		for _, pod := range pods.Items {
			if pod.Spec.NodeName != "" {
				bound++
			}
		}
		if bound != int(replicas) {
			return fmt.Errorf("%d pods have nodes, want %d", bound, replicas)
		}
		return nil
	})
}

func TestANewVersionOfARolloutWithItsConfigurationIsRolledOutOnce(t *testing.T) {
	e := newEnv(t)
	e.Node("argo-node")
	namespace := e.Stage("argo")
	rollouts := e.kind("argoproj.io", "v1alpha1", "Rollout")
	rollouts.install()
	h := e.Start(e2e.ReloadRule("argo"))
	e.Cloned("argo", "used", "1")
	rollouts.create(namespace, "web", "spec: {replicas: 2, template: "+podReading+"}")
	e.replicaSet(namespace, "web", "one", 2)
	rollouts.rolledOut(namespace, "web")
	adopted := rollouts.adopted(namespace, "web")
	e.Settled(h)

	version := rollouts.merge(namespace, "web", "spec: {template: {metadata: {labels: {version: '2'}}}}").GetGeneration()
	e.Change("argo", "used", "2")
	e.Waits(h, 1, "owner")
	require.Contains(t, e.HasEvent(namespace, "web", "RestartWaits"), "the rollout that is under way")
	e.SecondLater()
	rollouts.says(namespace, "web", version, 2, 0)
	e.replicaSet(namespace, "web", "two", 2)
	require.NoError(t, e.Admin.AppsV1().ReplicaSets(namespace).Delete(t.Context(), "web-one", metav1.DeleteOptions{}))
	e.Eventually(func(ctx context.Context) error {
		pods, err := e.Admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "rollouts-pod-template-hash=one"})
		if err == nil && len(pods.Items) > 0 {
			err = errors.New("old pods are there")
		}
		return err
	})
	rollouts.rolledOut(namespace, "web")
	e.Waits(h, 0, "owner")
	e.Eventually(func(context.Context) error {
		if rollouts.adopted(namespace, "web") == adopted {
			return errors.New("the baseline is as before")
		}
		return nil
	})
	e.Settled(h)
	stamped, err := rollouts.stamps(t.Context(), namespace)
	require.NoError(t, err)
	require.Empty(t, stamped)
}
