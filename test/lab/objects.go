package lab

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// NoSecrets makes a namespace refuse new Secrets, and waits until it does.
func (e *Env) NoSecrets(namespace string) {
	e.Helper()
	e.NoMoreSecretsThan(namespace, 0)
}

// NoMoreSecretsThan is NoSecrets for a namespace that has so many, or more.
func (e *Env) NoMoreSecretsThan(namespace string, n int64) {
	e.Helper()
	quotas := e.Admin.CoreV1().ResourceQuotas(namespace)
	_, err := quotas.Create(e.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"secrets": *resource.NewQuantity(n, resource.DecimalSI)}},
	}, metav1.CreateOptions{})
	require.NoError(e, err)
	e.Eventually(func(ctx context.Context) error {
		_, err := e.Admin.CoreV1().Secrets(namespace).Create(ctx, Secret(namespace, "probe", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return ErrorIf(err == nil || !strings.Contains(err.Error(), "exceeded quota"), "the quota is not in force yet: %v", err)
	})
}

// Create creates an object of a kind that client-go knows, in that namespace or, with none,
// cluster-wide.
func (e *Env) Create(namespace string, object runtime.Object) {
	e.Helper()
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	require.NoError(e, err)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	require.NoError(e, err)
	made := &unstructured.Unstructured{Object: content}
	made.SetGroupVersionKind(kinds[0])
	client, err := dynamic.NewForConfig(e.Config("admin", "system:masters"))
	require.NoError(e, err)
	resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
	_, err = client.Resource(resource).Namespace(namespace).Create(e.Context(), made, metav1.CreateOptions{})
	require.NoError(e, err)
}

// Dynamic is Admin for kinds that client-go does not know.
func (e *Env) Dynamic() dynamic.Interface {
	e.Helper()
	client, err := dynamic.NewForConfig(e.Cluster.Config())
	require.NoError(e, err)
	return client
}

// Definitions is the resource of CustomResourceDefinitions.
func Definitions() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// Manifest is an object written in YAML; without content, an empty one.
func (e *Env) Manifest(content string) *unstructured.Unstructured {
	e.Helper()
	var object unstructured.Unstructured
	require.NoError(e, yaml.Unmarshal([]byte(content), &object.Object))
	if object.Object == nil {
		object.Object = map[string]any{}
	}
	return &object
}

// Node makes a node that goes away with the test.
func (e *Env) Node(name string) {
	e.Helper()
	require.NoError(e, CreateNode(e.Context(), e.Admin, name))
	e.Cleanup(func() {
		_ = e.Admin.CoreV1().Nodes().Delete(context.WithoutCancel(e.Context()), name, metav1.DeleteOptions{})
	})
}

// Deployment makes a Deployment of no pods, whose template is of spec.
func (e *Env) Deployment(namespace, name string, spec corev1.PodSpec, annotations map[string]string) {
	e.Helper()
	deployment := Deployment(namespace, name, 0, spec)
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
	deployments := List(e, apps.Deployments(namespace).List, metav1.ListOptions{})
	for _, d := range deployments.Items {
		stamps["Deployment/"+d.Name] = d.Spec.Template.Annotations[mark.RestartedFor]
	}
	sets := List(e, apps.StatefulSets(namespace).List, metav1.ListOptions{})
	for _, s := range sets.Items {
		stamps["StatefulSet/"+s.Name] = s.Spec.Template.Annotations[mark.RestartedFor]
	}
	daemons := List(e, apps.DaemonSets(namespace).List, metav1.ListOptions{})
	for _, d := range daemons.Items {
		stamps["DaemonSet/"+d.Name] = d.Spec.Template.Annotations[mark.RestartedFor]
	}
	crons := List(e, e.Admin.BatchV1().CronJobs(namespace).List, metav1.ListOptions{})
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
		return ErrorIf(!slices.Equal(got, want), "restarted: %v; should be: %v", got, want)
	}
	e.Eventually(changed)
	e.Stays(changed)
}
