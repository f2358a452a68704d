package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/lab"
)

// crowdNode is one that no kubelet runs on.
const crowdNode = "bench-crowd-node"

// mounts compare an edit of a Secret that many running pods mount with as
// many bare patches of pods.
func (a *arena) mounts(ctx context.Context) error {
	n := a.options.consumers
	if err := a.addPods(ctx, n); err != nil {
		return err
	}
	name := measure.Name{Key: fmt.Sprintf("mounts/pods=%d", n), What: fmt.Sprintf("edit to the last of %d running pods refreshed", n)}
	err := a.compare(ctx, name, n, restartBudget,
		func(ctx context.Context) (time.Duration, error) {
			took, err := a.untilRefreshed(ctx, shared, a.editSource(crowdNamespace, a.version()))
			if err != nil {
				return 0, err
			}
			return took, a.headwater.Idle(ctx)
		},
		func(ctx context.Context) (time.Duration, error) {
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, mark.RefreshedFor, baseline(a.version()))
			return a.untilRefreshed(ctx, bare, func(ctx context.Context) error {
				return measure.Parallel(ctx, n, func(ctx context.Context, i int) error {
					_, err := a.peer.CoreV1().Pods(crowdNamespace).Patch(ctx, podName(bare, i), types.MergePatchType, patch, byPeer)
					return err
				})
			})
		})
	if err != nil {
		return err
	}
	var now int64
	return a.Admin.CoreV1().Pods(crowdNamespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{})
}

func podName(app string, i int) string { return fmt.Sprintf("%s-%05d", app, i) }

// addPods makes pods that run: n that mount the Secret, and n that mount one which
// no rule is about.
func (a *arena) addPods(ctx context.Context, n int) error {
	measure.Progress("making %d pods", 2*n)
	if err := lab.CreateNode(ctx, a.Admin, crowdNode); err != nil {
		return err
	}
	for _, app := range []string{shared, bare} {
		spec := lab.ByVolume(app)
		spec.NodeName = crowdNode
		err := measure.Parallel(ctx, n, func(ctx context.Context, i int) error {
			pod, err := a.Admin.CoreV1().Pods(crowdNamespace).Create(ctx, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: podName(app, i), Labels: map[string]string{"app": app}}, Spec: spec,
			}, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			return lab.SetRunning(ctx, a.Admin, pod)
		})
		if err != nil {
			return err
		}
	}
	return a.headwater.Idle(ctx)
}

// untilRefreshed times act until every pod of app bears another refresh. It
// returns once those of Headwater are confirmed, too.
func (a *arena) untilRefreshed(ctx context.Context, app string, act func(context.Context) error) (time.Duration, error) {
	list, err := a.Admin.CoreV1().Pods(crowdNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		return 0, err
	}
	pods, err := measure.Open(ctx, a.Admin.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, "")
	if err != nil {
		return 0, err
	}
	defer pods.Stop()
	m := measure.NewMarking()
	for _, pod := range list.Items {
		m.Before[pod.UID] = pod.Annotations[mark.RefreshedFor]
	}
	return m.Timed(ctx, act, pods, func(event watch.Event) (of types.UID, now string, noted bool) {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			return "", "", false
		}
		now = pod.Annotations[mark.RefreshedFor]
		return pod.UID, now, app == bare || pod.Annotations[mark.RefreshConfirmed] == now
	})
}
