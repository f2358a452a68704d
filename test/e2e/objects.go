package e2e

import (
	"context"
	"fmt"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/headwater-k8s/headwater/test/harness"
)

// NoSecrets makes a namespace refuse new Secrets, and waits until it does.
func (e *Env) NoSecrets(namespace string) {
	e.Helper()
	quotas := e.Admin.CoreV1().ResourceQuotas(namespace)
	_, err := quotas.Create(e.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"secrets": resource.MustParse("0")}},
	}, metav1.CreateOptions{})
	require.NoError(e, err)
	e.Eventually(func(ctx context.Context) error { // before that it is not enforced
		quota, err := quotas.Get(ctx, "none", metav1.GetOptions{})
		if err == nil && len(quota.Status.Hard) == 0 {
			err = fmt.Errorf("the quota is not in force yet")
		}
		return err
	})
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
	require.NoError(e, harness.CreateNode(e.Context(), e.Admin, name))
	e.Cleanup(func() {
		_ = e.Admin.CoreV1().Nodes().Delete(context.WithoutCancel(e.Context()), name, metav1.DeleteOptions{})
	})
}
