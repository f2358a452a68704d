package reload

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

// applied has a tool of GitOps apply the Deployment web, by server-side apply and
// without replicas, which are an autoscaler's.
func (e *env) applied(manager, namespace string) {
	e.Helper()
	manifest := lab.Deployment(namespace, "web", 0, lab.ByEnv("shared", "used"))
	manifest.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
	manifest.Spec.Replicas = nil
	manifest.Spec.Template.Annotations = map[string]string{"theirs": "yes"}
	body, err := json.Marshal(manifest)
	require.NoError(e, err)
	options := metav1.PatchOptions{FieldManager: manager, Force: new(true)}
	_, err = e.Admin.AppsV1().Deployments(namespace).Patch(e.Context(), "web", types.ApplyPatchType, body, options)
	require.NoError(e, err)
}

// owned are the fields of d that Headwater owns, as paths.
func owned(t *testing.T, d *appsv1.Deployment) []string {
	t.Helper()
	var paths []string
	var walk func(path string, fields map[string]any)
	walk = func(path string, fields map[string]any) {
		if len(fields) == 0 {
			paths = append(paths, path)
		}
		for name, below := range fields {
			if name != "." {
				walk(path+"/"+name, below.(map[string]any))
			}
		}
	}
	for _, entry := range d.ManagedFields {
		if entry.Manager == mark.FieldManager {
			var fields map[string]any
			require.NoError(t, json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields))
			walk("", fields)
		}
	}
	return paths
}

func TestARestartStaysBesideAnAutoscalerAndToolsOfGitOps(t *testing.T) {
	e, namespace := onNode(t, "beside")
	h := e.Reloads("beside")
	e.applied("kustomize-controller", namespace)
	e.Create(namespace, &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
			MinReplicas:    new(int32(3)), MaxReplicas: 5,
		},
	})
	e.Eventually(func(context.Context) error {
		if replicas := *e.read(namespace, "web").Spec.Replicas; replicas != 3 {
			return fmt.Errorf("scaled to %d", replicas)
		}
		return nil
	})
	e.rolledOut(namespace, "web")
	e.Settled(h)

	before := e.Stamps(namespace)
	e.Change("beside", "used", "2")
	e.Restarted(namespace, before, "Deployment/web")
	e.rolledOut(namespace, "web")
	stamp := e.Stamps(namespace)["Deployment/web"]
	for range 5 {
		e.applied("kustomize-controller", namespace)
		e.applied("argocd-controller", namespace)
	}
	e.Settled(h)
	web := e.read(namespace, "web")
	require.Equal(t, map[string]string{"theirs": "yes", mark.RestartedFor: stamp}, web.Spec.Template.Annotations)
	require.EqualValues(t, 3, *web.Spec.Replicas)
	require.Equal(t, 2, e.rollouts(namespace, "web"))
	annotation := "/f:metadata/f:annotations/f:"
	require.ElementsMatch(t, []string{
		annotation + mark.Baseline, annotation + mark.RestartedAt, annotation + mark.RestartedBecause, "/f:spec/f:template" + annotation + mark.RestartedFor,
	}, owned(t, web))
}
