package main

import (
	"context"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/cluster"
)

// rollouts counts how often the pod templates of Deployments were changed. The Deployment
// controller cannot be asked: after an outage it may count two as one.
type rollouts struct {
	follower

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
	r := &rollouts{templates: map[string]corev1.PodTemplateSpec{}, counts: map[string]int{}}
	r.follower = follower{cluster: c, resource: "deployments", next: now + 1, see: r.count}
	return r, err
}

// followEvery is well below the time after which etcd forgets.
const followEvery = time.Second

// of is how often the template of c was changed until now.
func (r *rollouts) of(ctx context.Context, c consumer) (int, error) {
	if err := until(ctx, r.read); err != nil {
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[c.namespace+"/"+c.name()], nil
}
