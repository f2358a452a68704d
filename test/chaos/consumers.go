package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/harness"
)

// consumer is a Deployment of no pods that consumes the clone in its namespace:
// one key of it as an environment variable, or, with none, all of it as a volume.
type consumer struct{ namespace, key string }

func (c consumer) String() string { return "Deployment " + c.namespace + "/" + c.name() }

func (c consumer) name() string { return "by-" + cmp.Or(c.key, "volume") }

func (c consumer) spec() corev1.PodSpec {
	if c.key == "" {
		return harness.ByVolume(shared)
	}
	return harness.ByEnv(shared, c.key)
}

func consumers() []consumer {
	var all []consumer
	for i := range homes {
		for _, key := range []string{"k", "other", ""} {
			all = append(all, consumer{fmt.Sprint(home, i), key})
		}
	}
	return all
}

func (w *world) deploy(ctx context.Context) error {
	for _, c := range consumers() {
		_, err := w.admin.AppsV1().Deployments(c.namespace).Create(ctx, harness.Deployment(c.namespace, c.name(), 0, c.spec()), metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create %s: %w", c, err)
		}
	}
	return nil
}

// standing takes away what says which data a consumer runs. Headwater then holds
// it to run what it was last restarted for, or the data of now; so what it is
// restarted for hereupon was lost before.
func (w *world) standing(ctx context.Context, c consumer) (standing, error) {
	before, err := w.rollouts.of(ctx, c)
	if err != nil || c.key == "" { // nothing restarts a volume's
		return standing{rollouts: before}, err
	}
	deployments := w.admin.AppsV1().Deployments(c.namespace)
	_, err = deployments.Patch(ctx, c.name(), types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, mark.Baseline), metav1.PatchOptions{})
	if err != nil {
		return standing{}, err
	}
	err = until(ctx, func(ctx context.Context) error {
		live, err := deployments.Get(ctx, c.name(), metav1.GetOptions{})
		if err == nil && live.Annotations[mark.Baseline] == "" {
			err = errors.New("it has no baseline")
		}
		return err
	})
	if err != nil {
		return standing{}, err
	}
	after, err := w.rollouts.of(ctx, c)
	return standing{rollouts: before, late: after != before}, err
}
