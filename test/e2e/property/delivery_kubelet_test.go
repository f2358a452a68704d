package property

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/harness"
)

// playKubelet has every pod that has a node run, or crash, until the end of the test.
func (w *deliveryWorld) playKubelet() {
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ticker := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				ticker.Stop()
				return
			case <-ticker.C:
				_ = w.playPods(ctx) // what was changed meanwhile is played next time
			}
		}
	}()
	w.Cleanup(func() { cancel(); <-done })
}

func (w *deliveryWorld) playPods(ctx context.Context) error {
	pods, err := w.Admin.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: "0", FieldSelector: "spec.nodeName=" + deliveryNode})
	if err != nil {
		return err
	}
	var errs []error
	for i := range pods.Items {
		pod := &pods.Items[i]
		switch crashes := len(pod.Status.ContainerStatuses) > 0; {
		case pod.DeletionTimestamp != nil || crashes:
		case pod.Status.Phase == corev1.PodPending:
			errs = append(errs, w.startPod(ctx, pod))
		case w.sick(pod.Namespace):
			errs = append(errs, w.crash(ctx, pod))
		}
	}
	return errors.Join(errs...)
}

// startPod has the container read what there is.
func (w *deliveryWorld) startPod(ctx context.Context, pod *corev1.Pod) error {
	value := ""
	if pod.Labels["app"] == w.models[0].rule {
		secret, err := w.Admin.CoreV1().Secrets(pod.Namespace).Get(ctx, sharedName, metav1.GetOptions{})
		if err != nil {
			return err // the container waits for it
		}
		value = string(secret.Data[valueKey])
	} else {
		configMap, err := w.Admin.CoreV1().ConfigMaps(pod.Namespace).Get(ctx, sharedName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		value = configMap.Data[valueKey]
	}
	if strings.HasPrefix(value, crashValue) || w.sick(pod.Namespace) {
		return w.crash(ctx, pod)
	}
	return harness.SetRunning(ctx, w.Admin, pod)
}

func (w *deliveryWorld) crash(ctx context.Context, pod *corev1.Pod) error {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now()})
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", RestartCount: 2, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.Now()}},
	}}
	_, err := w.Admin.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// heal deletes the pods that fail in a namespace; those that replace them start.
func (w *deliveryWorld) heal(namespace string) {
	w.setSick(namespace, false)
	for _, m := range w.models {
		delete(m.blamed, namespace)
	}
	pods, err := w.Admin.CoreV1().Pods(namespace).List(w.Context(), metav1.ListOptions{})
	require.NoError(w, err)
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
	if s.ObservedGeneration < d.Generation || s.UpdatedReplicas < 1 {
		return fmt.Errorf("%s has no pod of its template yet", name)
	}
	crashing := slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
		return pod.Namespace == d.Namespace && pod.Labels["app"] == d.Name && len(pod.Status.ContainerStatuses) > 0 &&
			pod.Annotations[mark.RestartedFor] == d.Spec.Template.Annotations[mark.RestartedFor]
	})
	if !crashing && (s.Replicas > 1 || s.AvailableReplicas < 1) {
		return fmt.Errorf("%s is not rolled out", name)
	}
	return nil
}
