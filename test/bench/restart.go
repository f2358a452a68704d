package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/harness"
)

// restarts compares a source edit that stamps a consumer in every namespace
// with as many bare updates and patches. It leaves no consumer behind.
func (a *arena) restarts(ctx context.Context) error {
	if err := a.addConsumers(ctx); err != nil {
		return err
	}
	what := fmt.Sprintf("source edit to the last of %d pod templates stamped", a.clones)
	err := a.compare(ctx, what, 1.25,
		func(ctx context.Context) (time.Duration, error) {
			took, err := a.untilStamped(ctx, shared, a.editSource(a.version()))
			if err != nil {
				return 0, err
			}
			return took, a.headwater.Idle(ctx)
		},
		func(ctx context.Context) (time.Duration, error) {
			version := a.version()
			return a.untilStamped(ctx, bare, func(ctx context.Context) error { return a.bareRestart(ctx, version) })
		})
	if err != nil {
		return err
	}
	return a.removeConsumers(ctx)
}

// addConsumers makes two Deployments in every namespace, one of which consumes
// the clone. They are paused: what the control plane makes of a rollout is no
// part of the measure.
func (a *arena) addConsumers(ctx context.Context) error {
	progress("making %d consumers", a.clones)
	for name, spec := range map[string]corev1.PodSpec{shared: harness.ByEnv(shared, "version"), bare: harness.ByNothing()} {
		err := parallel(ctx, a.clones, func(ctx context.Context, i int) error {
			deployment := harness.Deployment(target(i), name, 0, spec)
			deployment.Spec.Paused = true
			_, err := a.admin.AppsV1().Deployments(target(i)).Create(ctx, deployment, metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return err
		}
	}
	return a.headwater.Idle(ctx)
}

func (a *arena) removeConsumers(ctx context.Context) error {
	return parallel(ctx, a.clones, func(ctx context.Context, i int) error {
		return a.admin.AppsV1().Deployments(target(i)).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	})
}

// bareRestart does by hand what Headwater does: an update of every Secret, and
// then a patch of its consumer.
func (a *arena) bareRestart(ctx context.Context, version string) error {
	patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, mark.RestartedFor, version)
	return parallel(ctx, a.clones, func(ctx context.Context, i int) error {
		if err := update(ctx, a.peer, secret(target(i), bare, version)); err != nil {
			return err
		}
		_, err := a.peer.AppsV1().Deployments(target(i)).Patch(ctx, bare, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// untilStamped times act until every Deployment called name has another stamp.
// It returns once the control plane has taken note of all, too.
func (a *arena) untilStamped(ctx context.Context, name string, act func(context.Context) error) (time.Duration, error) {
	list, err := a.admin.AppsV1().Deployments("").List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return 0, err
	}
	deployments, err := open(ctx, a.admin.AppsV1().RESTClient(), "deployments", name)
	if err != nil {
		return 0, err
	}
	defer deployments.stop()
	r := &rollout{before: map[string]string{}, stamped: map[string]bool{}, noted: map[string]bool{}, began: time.Now()}
	for _, deployment := range list.Items {
		r.before[deployment.Namespace] = deployment.Spec.Template.Annotations[mark.RestartedFor]
	}
	_, err = timed(ctx, act, func(ctx context.Context) error { return deployments.until(ctx, r.ends) })
	return r.took, err
}

// rollout follows one Deployment in each of several namespaces.
type rollout struct {
	before         map[string]string // the stamps, by namespace
	stamped, noted map[string]bool
	began          time.Time
	took           time.Duration // until the last was stamped
}

// ends takes note of event, and says whether it was the last to wait for.
func (r *rollout) ends(event watch.Event) bool {
	deployment, ok := event.Object.(*appsv1.Deployment)
	if !ok || deployment.Spec.Template.Annotations[mark.RestartedFor] == r.before[deployment.Namespace] {
		return false
	}
	r.stamped[deployment.Namespace] = true
	if r.took == 0 && len(r.stamped) == len(r.before) {
		r.took = time.Since(r.began)
	}
	if deployment.Status.ObservedGeneration == deployment.Generation {
		r.noted[deployment.Namespace] = true
	}
	return len(r.noted) == len(r.before)
}
