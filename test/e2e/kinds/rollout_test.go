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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
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
	e, namespace := newStage(t, "counted")
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
	h := e.Reloads("counted")
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
		e.Stays(stamped)
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

// pods makes pods of one version as the controller of the kind does: of a Rollout
// by a ReplicaSet, else by itself. It waits until they have nodes.
func (k kind) pods(namespace, name, hash string, replicas int32) {
	k.Helper()
	like := lab.Deployment(namespace, name, replicas, lab.ByEnv("shared", "used"))
	labels := map[string]string{"app": name, "rollouts-pod-template-hash": hash}
	like.Spec.Template.Labels = labels
	if k.name == "Rollout" {
		k.Create(namespace, &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-" + hash},
			Spec:       appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: like.Spec.Template},
		})
	} else {
		owner, err := k.object(k.Context(), namespace, name)
		require.NoError(k, err)
		controller := metav1.NewControllerRef(owner, owner.GroupVersionKind())
		for range replicas {
			k.Create(namespace, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-", Labels: labels, OwnerReferences: []metav1.OwnerReference{*controller}},
				Spec:       like.Spec.Template.Spec,
			})
		}
	}
	k.bound(namespace, name, hash, int(replicas))
}

// bound waits until so many pods of one version have nodes.
func (k kind) bound(namespace, name, hash string, want int) {
	k.Helper()
	k.Eventually(func(ctx context.Context) error {
		pods, err := k.Admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: versioned(name, hash)})
		if err != nil {
			return err
		}
		bound := 0
		for _, pod := range pods.Items {
			if pod.Spec.NodeName != "" {
				bound++
			}
		}
		return lab.ErrorIf(bound != want, "%d pods have nodes, want %d", bound, want)
	})
}

func versioned(name, hash string) string {
	return "app=" + name + ",rollouts-pod-template-hash=" + hash
}

// withoutPods removes the pods of one version, as the controller of the kind does.
func (k kind) withoutPods(namespace, name, hash string) {
	k.Helper()
	if k.name == "Rollout" {
		require.NoError(k, k.Admin.AppsV1().ReplicaSets(namespace).Delete(k.Context(), name+"-"+hash, metav1.DeleteOptions{}))
	} else {
		require.NoError(k, k.Admin.CoreV1().Pods(namespace).DeleteCollection(k.Context(), metav1.DeleteOptions{},
			metav1.ListOptions{LabelSelector: versioned(name, hash)}))
	}
	k.bound(namespace, name, hash, 0)
}

// adoptedAgain waits until the baseline is another than before.
func (k kind) adoptedAgain(namespace, name, before string) {
	k.Helper()
	k.Eventually(func(context.Context) error {
		return lab.ErrorIf(k.adopted(namespace, name) == before, "the baseline is as before")
	})
}

func TestANewVersionOfWhateverKindWithItsConfigurationIsRolledOutOnce(t *testing.T) {
	e, namespace := onNode(t, "argo")
	workloads := map[string]kind{"web": e.kind("argoproj.io", "v1alpha1", "Rollout"), "app": e.kind("example.com", "v1", "App")}
	workloads["web"].install()
	workloads["app"].install()
	workloads["app"].grant()
	e.Sections = "reload: {workloads: [{group: example.com, version: v1, kind: App}]}\n"
	h := e.Reloads("argo")
	adopted, version := map[string]string{}, map[string]int64{}
	for name, kind := range workloads {
		kind.create(namespace, name, "spec: {replicas: 2, template: "+podReading+"}")
		kind.pods(namespace, name, "one", 2)
		kind.rolledOut(namespace, name)
		adopted[name] = kind.adopted(namespace, name)
	}
	e.Settled(h)

	for name, kind := range workloads {
		version[name] = kind.merge(namespace, name, "spec: {template: {metadata: {labels: {version: '2'}}}}").GetGeneration()
	}
	e.Settled(h) // it has seen that
	e.Change("argo", "used", "2")
	e.Waits(h, 2, "owner")
	e.SecondLater()
	for name, kind := range workloads {
		require.Contains(t, e.HasEvent(namespace, name, "RestartWaits"), "a rollout in progress")
		kind.says(namespace, name, version[name], 2, 0)
		kind.pods(namespace, name, "two", 2)
	}
	e.Settled(h) // it has seen these pods: a controller says that a rollout is over long after
	for name, kind := range workloads {
		kind.rolledOut(namespace, name)
	}
	e.Settled(h)
	e.Waits(h, 2, "owner") // Headwater may see a status before it sees that pods are gone
	for name, kind := range workloads {
		kind.withoutPods(namespace, name, "one")
	}
	e.Waits(h, 0, "owner")
	for name, kind := range workloads {
		kind.adoptedAgain(namespace, name, adopted[name])
	}
	e.Settled(h)
	for _, kind := range workloads {
		stamped, err := kind.stamps(t.Context(), namespace)
		require.NoError(t, err)
		require.Empty(t, stamped)
	}
}
