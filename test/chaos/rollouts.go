package main

import (
	"context"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/cluster"
)

// rollouts counts how often the pod templates of Deployments were changed, by
// what etcd says was written. The Deployment controller cannot be asked: after
// an outage it may count two as one.
type rollouts struct {
	cluster *cluster.Cluster

	mu sync.Mutex
	// next is the revision of etcd from which on nothing was read yet.
	next      int64
	templates map[string]corev1.PodTemplateSpec
	counts    map[string]int
}

// newRollouts counts from now on.
func newRollouts(ctx context.Context, c *cluster.Cluster, client kubernetes.Interface) (*rollouts, error) {
	list, err := client.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	now, err := strconv.ParseInt(list.ResourceVersion, 10, 64)
	return &rollouts{cluster: c, next: now + 1, templates: map[string]corev1.PodTemplateSpec{}, counts: map[string]int{}}, err
}

// followEvery is well below the time after which etcd forgets.
const followEvery = time.Second

// follow reads what is written as it is written, until ctx ends. It goes on
// where etcd could not be asked.
func (r *rollouts) follow(ctx context.Context) {
	for pauseFor(ctx, followEvery) == nil {
		_ = r.read(ctx)
	}
}

func (r *rollouts) read(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	editions, next, err := r.cluster.History(ctx, r.next, "deployments")
	if err != nil {
		return err
	}
	r.next = next
	for _, edition := range editions {
		d, ok := edition.Object.(*appsv1.Deployment)
		if !ok {
			continue
		}
		key := edition.Namespace + "/" + edition.Name
		if before, known := r.templates[key]; known && !equality.Semantic.DeepEqual(before, d.Spec.Template) {
			r.counts[key]++
		}
		r.templates[key] = d.Spec.Template
	}
	return nil
}

// of is how often the template of c was changed until now.
func (r *rollouts) of(ctx context.Context, c consumer) (int, error) {
	if err := until(ctx, r.read); err != nil {
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[c.namespace+"/"+c.name()], nil
}
