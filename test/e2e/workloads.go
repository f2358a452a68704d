package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/harness"
)

// Deployment makes a Deployment of no pods, whose template is of spec.
func (e *Env) Deployment(namespace, name string, spec corev1.PodSpec, annotations map[string]string) {
	e.Helper()
	deployment := harness.Deployment(namespace, name, 0, spec)
	deployment.Annotations = annotations
	_, err := e.Admin.AppsV1().Deployments(namespace).Create(e.Context(), deployment, metav1.CreateOptions{})
	require.NoError(e, err)
}

// Stamps are the restarted-for annotations of all pod templates in namespace,
// by kind and name; empty for those without.
func (e *Env) Stamps(namespace string) map[string]string {
	e.Helper()
	stamps := map[string]string{}
	apps := e.Admin.AppsV1()
	deployments, err := apps.Deployments(namespace).List(e.Context(), metav1.ListOptions{})
	require.NoError(e, err)
	for _, d := range deployments.Items {
		stamps["Deployment/"+d.Name] = d.Spec.Template.Annotations[mark.RestartedFor]
	}
	sets, err := apps.StatefulSets(namespace).List(e.Context(), metav1.ListOptions{})
	require.NoError(e, err)
	for _, s := range sets.Items {
		stamps["StatefulSet/"+s.Name] = s.Spec.Template.Annotations[mark.RestartedFor]
	}
	daemons, err := apps.DaemonSets(namespace).List(e.Context(), metav1.ListOptions{})
	require.NoError(e, err)
	for _, d := range daemons.Items {
		stamps["DaemonSet/"+d.Name] = d.Spec.Template.Annotations[mark.RestartedFor]
	}
	crons, err := e.Admin.BatchV1().CronJobs(namespace).List(e.Context(), metav1.ListOptions{})
	require.NoError(e, err)
	for _, c := range crons.Items {
		stamps["CronJob/"+c.Name] = c.Spec.JobTemplate.Spec.Template.Annotations[mark.RestartedFor]
	}
	return stamps
}

// Restarted waits until exactly these workloads bear another stamp than
// before, and stays so.
func (e *Env) Restarted(namespace string, before map[string]string, want ...string) {
	e.Helper()
	slices.Sort(want)
	changed := func(context.Context) error {
		var got []string
		now := e.Stamps(namespace)
		for _, name := range slices.Sorted(maps.Keys(now)) {
			if now[name] != before[name] {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("restarted: %v; should be: %v", got, want)
		}
		return nil
	}
	e.Eventually(changed)
	e.Stays(changed)
}
