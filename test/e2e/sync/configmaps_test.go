package sync

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

// configMap returns a ConfigMap, or nil if there is none.
func (e *env) configMap(namespace, name string) *corev1.ConfigMap {
	e.Helper()
	found, err := e.Admin.CoreV1().ConfigMaps(namespace).Get(e.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(e, err)
	return found
}

// configMapHas is a condition: ConfigMap shared there has a text and bytes like that.
func (e *env) configMapHas(namespace, text, bytes string) func(context.Context) error {
	return func(context.Context) error {
		found := e.configMap(namespace, "shared")
		if found == nil {
			return fmt.Errorf("there is no ConfigMap in %s", namespace)
		}
		return lab.ErrorIf(!maps.Equal(found.Data, map[string]string{"k": text}) || string(found.BinaryData["b"]) != bytes,
			"%s has %v and %v", namespace, found.Data, found.BinaryData)
	}
}

func (e *env) editConfigMap(namespace, name, text string, bytes []byte) {
	e.Helper()
	config := e.configMap(namespace, name)
	config.Data, config.BinaryData = map[string]string{"k": text}, map[string][]byte{"b": bytes}
	_, err := e.Admin.CoreV1().ConfigMaps(namespace).Update(e.Context(), config, metav1.UpdateOptions{})
	require.NoError(e, err)
}

func TestAConfigMapWithoutAValueIsHeldAndItsCopiesAreTheirOwners(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("config-src", "config-a", "config-b", "unconfig")
	e.Create("config-src", &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "shared"}, Data: map[string]string{"k": "v"}, BinaryData: map[string][]byte{"b": []byte("\xff")},
	})
	h := e.Start(`
- name: config
  source: {kind: ConfigMap, namespace: config-src, name: shared}
  sync: {namespaces: {include: ["config-*"]}}
`)
	e.Eventually(e.configMapHas("config-a", "v", "\xff"))
	e.Eventually(e.configMapHas("config-b", "v", "\xff"))
	e.Settled(h)

	copied := e.configMap("config-a", "shared").DeepCopy()
	copied.ObjectMeta = metav1.ObjectMeta{Namespace: "unconfig", Name: "shared", Labels: copied.Labels, Annotations: copied.Annotations}
	require.Equal(t, "config-a/shared", copied.Annotations[mark.Target])
	e.Create("unconfig", copied)
	copied = e.configMap("unconfig", "shared")

	e.editConfigMap("config-src", "shared", "", nil)
	require.Contains(t, e.HasEvent("config-src", "shared", "SourceEmptied"), "headwater approve config")
	require.NoError(t, e.Admin.CoreV1().ConfigMaps("config-b").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	e.Namespace("config-new")
	e.HasMetric(h, 3, "headwater_sync_clones", map[string]string{"rule": "config", "state": "held"})
	e.Stays(e.configMapHas("config-a", "v", "\xff"))
	for _, namespace := range []string{"config-b", "config-new"} {
		require.Nil(t, e.configMap(namespace, "shared"), "in %s", namespace)
	}

	e.editConfigMap("config-src", "shared", "", []byte("\xfe"))
	for _, namespace := range []string{"config-a", "config-b", "config-new"} {
		e.Eventually(e.configMapHas(namespace, "", "\xfe"))
	}
	require.Equal(t, copied, e.configMap("unconfig", "shared"))
}
