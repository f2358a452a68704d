package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// monitoring is a kind of the Prometheus operator, with objects of any content:
// test/deploy holds them against its types.
const monitoring = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: %[2]s, plural: %[1]ss}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// Every part that the chart has is accepted, also those that are off by default.
func TestAllThatTheChartCanRenderIsAccepted(t *testing.T) {
	e := newEnv(t)
	for plural, kind := range map[string]string{"servicemonitor": "ServiceMonitor", "prometheusrule": "PrometheusRule"} {
		_, err := e.Dynamic().Resource(lab.Definitions()).Create(t.Context(), e.Manifest(fmt.Sprintf(monitoring, plural, kind)), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	e.Eventually(func(ctx context.Context) error { // once the two kinds are served
		return lab.Accepted(ctx, e.Cluster.Config(), filepath.Join(lab.Root(t), "test/deploy/testdata/everything.golden.yaml"))
	})
}

// With rbac.protect, rbac.reload and rbac.secrets false, cloning ConfigMaps lacks nothing.
func TestToCloneTakesNoPermissionOfOtherModules(t *testing.T) {
	c := cluster.ForTest(t, cluster.Options{})
	i := &installation{env: &env{lab.On(t, c)}, folder: t.TempDir()}
	i.apply("test/deploy/testdata/least.golden.yaml") // over what lab.On grants
	i.Create(lab.Namespace, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "headwater"},
		Data: map[string]string{"headwater.yaml": `
apiVersion: headwater.dev/v1alpha1
kind: Config
rules:
- {name: cloned, source: {kind: ConfigMap, namespace: cloned-src, name: shared}, sync: {namespaces: {include: [cloned-a]}}}
reload: {optIn: false}
`},
	})
	i.Namespaces("cloned-src", "cloned-a")
	data := map[string]string{"k": "v"}
	i.Create("cloned-src", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shared"}, Data: data})
	i.mount()
	h := i.Launch(i.pod())
	require.NoError(t, h.Ready(t.Context()))
	i.Eventually(func(ctx context.Context) error {
		clone, err := i.Admin.CoreV1().ConfigMaps("cloned-a").Get(ctx, "shared", metav1.GetOptions{})
		return errors.Join(err, lab.ErrorIf(!maps.Equal(clone.Data, data), "the clone has %v", clone.Data))
	})
	h.Stop()
	refused, err := c.Requests(t.Context(), func(r cluster.Request) bool {
		// What may be left of protect is looked for, and not there if that may not be.
		look := r.Verb == "list" && r.Group == "admissionregistration.k8s.io"
		return r.User == lab.ServiceAccount && r.Code == http.StatusForbidden && !look
	})
	require.NoError(t, err)
	require.Empty(t, refused)
}
