package main

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/lab"
)

// followers are objects of one kind that use a Secret, and by what it shows that
// something was done about them when it changed.
type followers struct {
	resource string
	client   rest.Interface
	// create makes the one of that name, which uses the Secret.
	create func(ctx context.Context, name, secret string) error
	list   func(context.Context) ([]runtime.Object, error)
	// read says what is to be seen of one that is at work: its mark, and whether
	// the control plane has taken note of it.
	read func(runtime.Object) (of types.UID, name, mark string, noted bool)
	// touch is a bare patch that changes the mark.
	touch func(ctx context.Context, name, version string) error
}

// templates measures an edit of a Secret until the pod templates that use it are
// others: what restarts pods. The Deployments have none, so that what the control
// plane makes of it is little.
func (s *stage) templates(ctx context.Context) error {
	n := s.options.clones
	name := measure.Name{Key: fmt.Sprintf("restarts/templates=%d", n), What: fmt.Sprintf("edit to the last of %d pod templates stamped", n)}
	api := s.client.AppsV1().Deployments(s.options.crowdNamespace())
	return s.follow(ctx, name, followers{
		resource: "deployments", client: s.client.AppsV1().RESTClient(),
		create: func(ctx context.Context, name, secret string) error {
			deployment := lab.Deployment(s.options.crowdNamespace(), name, 0, lab.ByEnv(secret, "version"))
			deployment.Annotations = s.options.preset.workload
			_, err := api.Create(ctx, deployment, metav1.CreateOptions{})
			return err
		},
		list: func(ctx context.Context) ([]runtime.Object, error) {
			list, err := api.List(ctx, metav1.ListOptions{})
			return pointers(list.Items, func(d *appsv1.Deployment) runtime.Object { return d }), err
		},
		read: func(object runtime.Object) (types.UID, string, string, bool) {
			deployment, ok := object.(*appsv1.Deployment)
			if !ok {
				return "", "", "", false
			}
			return deployment.UID, deployment.Name, inJSON(deployment.Spec.Template), deployment.Status.ObservedGeneration == deployment.Generation
		},
		touch: func(ctx context.Context, name, version string) error {
			patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, runLabel, version)
			_, err := api.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		},
	})
}

// pods measures an edit of a Secret until the running pods that mount it have
// other annotations, on which the kubelet rewrites the files.
func (s *stage) pods(ctx context.Context) error {
	n := s.options.clones
	name := measure.Name{Key: fmt.Sprintf("refresh/pods=%d", n), What: fmt.Sprintf("edit to the last of %d running pods refreshed", n)}
	api := s.client.CoreV1().Pods(s.options.crowdNamespace())
	return s.follow(ctx, name, followers{
		resource: "pods", client: s.client.CoreV1().RESTClient(),
		create: func(ctx context.Context, name, secret string) error {
			spec := lab.ByVolume(secret)
			spec.NodeName, spec.HostNetwork = s.options.node, false
			spec.Containers[0].Image, spec.Containers[0].ImagePullPolicy = s.options.image, corev1.PullIfNotPresent
			meta := metav1.ObjectMeta{Name: name, Annotations: s.options.preset.workload}
			_, err := api.Create(ctx, &corev1.Pod{ObjectMeta: meta, Spec: spec}, metav1.CreateOptions{})
			return err
		},
		list: func(ctx context.Context) ([]runtime.Object, error) {
			list, err := api.List(ctx, metav1.ListOptions{})
			return pointers(list.Items, func(p *corev1.Pod) runtime.Object { return p }), err
		},
		read: func(object runtime.Object) (types.UID, string, string, bool) {
			pod, ok := object.(*corev1.Pod)
			if !ok || pod.Status.Phase != corev1.PodRunning {
				return "", "", "", false
			}
			return pod.UID, pod.Name, inJSON(pod.Annotations), true
		},
		touch: func(ctx context.Context, name, version string) error {
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, runLabel, version)
			_, err := api.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		},
	})
}

func inJSON(object any) string {
	text, err := json.Marshal(object)
	if err != nil {
		return err.Error() // plain data always can be
	}
	return string(text)
}

func pointers[T any](items []T, as func(*T) runtime.Object) []runtime.Object {
	out := make([]runtime.Object, len(items))
	for i := range items {
		out[i] = as(&items[i])
	}
	return out
}
