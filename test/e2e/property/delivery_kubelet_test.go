package property

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/test/lab"
)

// health has a new pod read what there is: it runs, or crashes, until it is deleted.
func (w *deliveryWorld) health(ctx context.Context, pod *corev1.Pod) (lab.Health, error) {
	switch {
	case pod.DeletionTimestamp != nil || len(pod.Status.ContainerStatuses) > 0:
		return lab.Waits, nil
	case w.sick(pod.Namespace):
		return lab.Crashes, nil
	case pod.Status.Phase != corev1.PodPending:
		return lab.Waits, nil
	}
	values, err := w.reads(ctx, pod)
	if values == nil {
		return lab.Waits, err // the container waits for its clones
	}
	if pod.Namespace == slowNamespace && time.Since(pod.CreationTimestamp.Time) < slowStart {
		return lab.Waits, nil
	}
	for _, value := range values {
		if lab.ByValue(value) == lab.Crashes {
			return lab.Crashes, nil
		}
	}
	return lab.Runs, nil
}

// reads returns what the pod read at its start, by the consumer that reads it alone: now, if
// every clone exists that it did not read yet, and else nil. The test may end meanwhile, which
// is an error, and none of the test.
func (w *deliveryWorld) reads(ctx context.Context, pod *corev1.Pod) (values map[string]string, err error) {
	w.mu.Lock()
	values, readable := w.read[pod.UID]
	w.mu.Unlock()
	if readable {
		return values, nil
	}
	values = map[string]string{}
	for _, m := range w.models {
		if app := pod.Labels["app"]; app != m.consumer() && app != sharedConsumer {
			continue
		}
		clone, err := w.lookup(ctx, object.Ref{Kind: m.kind, Namespace: pod.Namespace, Name: sharedName})
		if clone == nil {
			return nil, err
		}
		values[m.consumer()] = string(clone.Content.Data[valueKey])
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read[pod.UID] = values
	return values, nil
}

// heal deletes the pods that fail in a namespace; those that replace them start.
func (w *deliveryWorld) heal(namespace string) {
	w.setSick(namespace, false)
	for _, m := range w.models {
		delete(m.blamed, namespace)
	}
	pods := lab.List(w, w.Admin.CoreV1().Pods(namespace).List, metav1.ListOptions{})
	for _, pod := range pods.Items {
		if len(pod.Status.ContainerStatuses) > 0 {
			if err := w.Admin.CoreV1().Pods(namespace).Delete(w.Context(), pod.Name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
				require.NoError(w, err)
			}
		}
	}
}

// rolledOut is nil once every consumer runs pods of its last template, or has one that
// crashes.
func (w *deliveryWorld) rolledOut(ctx context.Context) error {
	deployments, err := w.Admin.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	pods, err := w.Admin.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, d := range deployments.Items {
		if _, alive := w.rings[d.Namespace]; !alive {
			continue
		}
		if err := w.complete(&d, pods.Items); err != nil {
			return err
		}
	}
	return nil
}

func (w *deliveryWorld) complete(d *appsv1.Deployment, pods []corev1.Pod) error {
	name := d.Namespace + "/" + d.Name
	s := d.Status
	if *d.Spec.Replicas == 0 {
		return lab.ErrorIf(s.ObservedGeneration < d.Generation || s.Replicas > 0, "%s still has pods", name)
	}
	if s.ObservedGeneration < d.Generation || s.UpdatedReplicas < 1 {
		return fmt.Errorf("%s has no pod of its template yet", name)
	}
	crashing := slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
		return pod.Namespace == d.Namespace && pod.Labels["app"] == d.Name && len(pod.Status.ContainerStatuses) > 0 &&
			pod.Annotations[mark.RestartedFor] == d.Spec.Template.Annotations[mark.RestartedFor]
	})
	return lab.ErrorIf(!crashing && (s.Replicas > 1 || s.AvailableReplicas < 1), "%s is not rolled out", name)
}
