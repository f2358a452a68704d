package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// consumer is a Deployment of no pods that consumes the clone in its namespace:
// one key of it as an environment variable, or, with none, all of it as a volume.
type consumer struct{ namespace, key string }

func (c consumer) String() string { return "Deployment " + c.namespace + "/" + c.name() }

func (c consumer) name() string { return "by-" + cmp.Or(c.key, "volume") }

func (c consumer) spec() corev1.PodSpec {
	if c.key == "" {
		return lab.ByVolume(shared)
	}
	return lab.ByEnv(shared, c.key)
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
		_, err := w.admin.AppsV1().Deployments(c.namespace).Create(ctx, lab.Deployment(c.namespace, c.name(), 0, c.spec()), metav1.CreateOptions{})
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
	// What is stripped of its baseline in the middle of a rollout is restarted once more, rightly.
	err = until(ctx, func(ctx context.Context) error {
		live, err := deployments.Get(ctx, c.name(), metav1.GetOptions{})
		if err == nil && live.Status.ObservedGeneration < live.Generation {
			err = errors.New("its controller has not seen the last rollout")
		}
		return err
	})
	if err != nil {
		return standing{}, err
	}
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

// follower reads what etcd says was written to a resource, as it is written.
type follower struct {
	cluster  *cluster.Cluster
	resource string

	mu sync.Mutex
	// next is the revision of etcd from which on nothing was read yet.
	next int64
	// see is told each edition, in order; mu is locked.
	see func(cluster.Edition)
}

// follow reads until ctx ends. It goes on where etcd could not be asked.
func (f *follower) follow(ctx context.Context) {
	for pauseFor(ctx, followEvery) == nil {
		_ = f.read(ctx)
	}
}

func (f *follower) read(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	editions, next, err := f.cluster.History(ctx, f.next, f.resource)
	if err != nil {
		return err
	}
	f.next = next
	for _, edition := range editions {
		f.see(edition)
	}
	return nil
}

func (r *rollouts) count(edition cluster.Edition) {
	d, ok := edition.Object.(*appsv1.Deployment)
	if !ok {
		return
	}
	key := edition.Namespace + "/" + edition.Name
	if before, known := r.templates[key]; known && !equality.Semantic.DeepEqual(before, d.Spec.Template) {
		r.counts[key]++
	}
	r.templates[key] = d.Spec.Template
}
