package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/lab"
)

// restarts compares a source edit that stamps a consumer in every namespace
// with as many bare updates and patches. It leaves no consumer behind.
func (a *arena) restarts(ctx context.Context) error {
	scattered := consumers{a.clones, func(app string, i int) (string, string) { return target(i), app }}
	name := measure.Name{
		Key:  fmt.Sprintf("restarts/scattered/templates=%d", a.clones),
		What: fmt.Sprintf("source edit to the last of %d pod templates stamped", a.clones),
	}
	return a.stamping(ctx, name, scattered, sourceNamespace, func(ctx context.Context, namespace, version string) error {
		return measure.Update(ctx, a.peer, bareClone(namespace, version))
	})
}

// crowds compare an edit of a Secret that many workloads of its own namespace
// consume with as many bare patches.
func (a *arena) crowds(ctx context.Context) error {
	for _, n := range crowdSizes(a.options.consumers) {
		together := consumers{n, func(app string, i int) (string, string) { return crowdNamespace, fmt.Sprintf("%s-%05d", app, i) }}
		name := measure.Name{
			Key:  fmt.Sprintf("restarts/together/templates=%d", n),
			What: fmt.Sprintf("edit to the last of %d pod templates stamped, in one namespace", n),
		}
		nothing := func(context.Context, string, string) error { return nil }
		if err := a.stamping(ctx, name, together, crowdNamespace, nothing); err != nil {
			return err
		}
	}
	return nil
}

// consumers are two Deployments, shared and bare, in each of n places. Each
// consumes the Secret of its name; no rule is about the bare one.
type consumers struct {
	n     int
	place func(app string, i int) (namespace, name string)
}

// stamping compares the restart of all that consume the source of that
// namespace with a bare patch of each of the others, after what before does.
func (a *arena) stamping(
	ctx context.Context, name measure.Name, of consumers, source string, before func(ctx context.Context, namespace, version string) error,
) error {
	if err := a.addConsumers(ctx, of); err != nil {
		return err
	}
	err := a.compare(ctx, name, of.n, restartBudget,
		func(ctx context.Context) (time.Duration, error) {
			took, err := a.untilStamped(ctx, shared, a.editSource(source, a.version()))
			if err != nil {
				return 0, err
			}
			return took, a.headwater.Idle(ctx)
		},
		func(ctx context.Context) (time.Duration, error) {
			version := a.version()
			return a.untilStamped(ctx, bare, func(ctx context.Context) error {
				return measure.Parallel(ctx, of.n, func(ctx context.Context, i int) error {
					namespace, name := of.place(bare, i)
					if err := before(ctx, namespace, version); err != nil {
						return err
					}
					return a.bareRestart(ctx, namespace, name, version)
				})
			})
		})
	if err != nil {
		return err
	}
	return a.removeConsumers(ctx, of)
}

// addConsumers makes consumers. The Deployments are paused: what the control
// plane makes of a rollout is no part of the measure.
func (a *arena) addConsumers(ctx context.Context, of consumers) error {
	measure.Progress("making %d consumers", of.n)
	for _, app := range []string{shared, bare} {
		err := measure.Parallel(ctx, of.n, func(ctx context.Context, i int) error {
			namespace, name := of.place(app, i)
			deployment := lab.Deployment(namespace, app, 0, lab.ByEnv(app, "version"))
			deployment.Name, deployment.Spec.Paused = name, true
			_, err := a.Admin.AppsV1().Deployments(namespace).Create(ctx, deployment, metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return err
		}
	}
	return a.headwater.Idle(ctx)
}

func (a *arena) removeConsumers(ctx context.Context, of consumers) error {
	namespaces := map[string]bool{}
	for i := range of.n {
		namespace, _ := of.place(shared, i)
		namespaces[namespace] = true
	}
	all := slices.Collect(maps.Keys(namespaces))
	return measure.Parallel(ctx, len(all), func(ctx context.Context, i int) error {
		return a.Admin.AppsV1().Deployments(all[i]).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	})
}

// bareRestart does by hand what Headwater does: one patch that stamps the pod
// template and writes down what for and when. To the API server that is a
// quarter more than the stamp alone.
func (a *arena) bareRestart(ctx context.Context, namespace, name, version string) error {
	now, at := baseline(version), time.Now()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q,%q:%q,%q:%q}},"spec":{"template":{"metadata":{"annotations":{%q:%q,%q:%q}}}}}`,
		mark.Baseline, now, mark.RestartedAt, mark.FormatTime(at), mark.RestartedBefore, "30,60",
		mark.RestartedFor, now, mark.RestartedAfter, mark.FormatTime(at.Add(-30*time.Second)))
	_, err := a.peer.AppsV1().Deployments(namespace).Patch(ctx, name, types.MergePatchType, patch, byPeer)
	return err
}

// baseline is as long as one of Headwater's.
func baseline(version string) string { return fmt.Sprintf("v2:01234567:01234567=%016s", version) }

// untilStamped times act until every Deployment of app has another stamp. It
// returns once the control plane has taken note of all, too.
func (a *arena) untilStamped(ctx context.Context, app string, act func(context.Context) error) (time.Duration, error) {
	list, err := a.Admin.AppsV1().Deployments("").List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		return 0, err
	}
	deployments, err := measure.Open(ctx, a.Admin.AppsV1().RESTClient(), "deployments", metav1.NamespaceAll, "")
	if err != nil {
		return 0, err
	}
	defer deployments.Stop()
	m := measure.NewMarking()
	for _, deployment := range list.Items {
		m.Before[deployment.UID] = deployment.Spec.Template.Annotations[mark.RestartedFor]
	}
	return m.Timed(ctx, act, deployments, func(event watch.Event) (of types.UID, now string, noted bool) {
		deployment, ok := event.Object.(*appsv1.Deployment)
		if !ok {
			return "", "", false
		}
		noted = deployment.Status.ObservedGeneration == deployment.Generation
		return deployment.UID, deployment.Spec.Template.Annotations[mark.RestartedFor], noted
	})
}
