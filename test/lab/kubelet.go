package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Health is what a kubelet reports of a pod.
type Health int

// A pod Waits as long as nothing is reported. One that Hangs runs and does not become ready.
const (
	Waits Health = iota
	Runs
	Crashes
	Hangs
)

// HealthOf says what becomes of a pod, such as by the value that it reads.
type HealthOf func(context.Context, *corev1.Pod) (Health, error)

// Values that pods read begin with these; see ByValue.
const (
	CrashValue = "crash-"
	HangValue  = "hang-"
)

// ByValue is the health of a pod that reads value: it crashes, hangs or becomes ready as the value says.
func ByValue(value string) Health {
	switch {
	case strings.HasPrefix(value, CrashValue):
		return Crashes
	case strings.HasPrefix(value, HangValue):
		return Waits
	default:
		return Runs
	}
}

// PlayPods plays the kubelet once, for the pods that a field selector selects and that have a node.
func PlayPods(ctx context.Context, client kubernetes.Interface, selector string, of HealthOf) error {
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: "0", FieldSelector: selector})
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	var errs []error
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Spec.NodeName == "" {
			continue
		}
		health, err := of(ctx, pod)
		switch {
		case err != nil:
		case health == Runs:
			err = SetRunning(ctx, client, pod)
		case health == Crashes:
			err = SetCrashing(ctx, client, pod)
		case health == Hangs:
			err = setStatus(ctx, client, pod, corev1.ConditionFalse, nil)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// PlayKubelet plays it until the test ends. What fails, since the pod was changed meanwhile or the
// API server is down, is tried again.
func (e *Env) PlayKubelet(selector string, of HealthOf) {
	ctx, cancel := context.WithCancel(e.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-ticker.C:
				_ = PlayPods(ctx, e.Admin, selector, of)
			}
		}
	}()
	e.Cleanup(func() { cancel(); <-done })
}

// CreateNode makes a node that the scheduler uses although no kubelet runs on
// it.
func CreateNode(ctx context.Context, client kubernetes.Interface, name string) error {
	node, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create node: %w", err)
	}
	quantities := corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("1000")}
	node.Status.Capacity, node.Status.Allocatable = quantities, quantities
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Played",
		LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}
	node.ResourceVersion = "" // the control plane may have tainted it meanwhile
	if _, err := client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("make node ready: %w", err)
	}
	return nil
}

// SetRunning plays the kubelet of a pod that is bound to a node.
func SetRunning(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	return setStatus(ctx, client, pod, corev1.ConditionTrue, nil)
}

// SetCrashing plays the kubelet of a pod whose container ends whenever it is
// started.
func SetCrashing(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	return setStatus(ctx, client, pod, corev1.ConditionFalse, []corev1.ContainerStatus{{
		Name: "app", RestartCount: 2,
		State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: crashLoop}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.Now()}},
	}})
}

const crashLoop = "CrashLoopBackOff"

// InCrashLoop reports whether a kubelet says that the container crashes again and
// again.
func InCrashLoop(container corev1.ContainerStatus) bool {
	return container.State.Waiting != nil && container.State.Waiting.Reason == crashLoop
}

func setStatus(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, isReady corev1.ConditionStatus, containers []corev1.ContainerStatus) error {
	pod = pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = containers
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: isReady, LastTransitionTime: metav1.Now()}
	pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == ready.Type })
	pod.Status.Conditions = append(pod.Status.Conditions, ready)
	if _, err := client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("set the status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}
