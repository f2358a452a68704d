package sync

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/lab"
)

// Options of other tools reach clones; the keys by which these tools claim an object do not.
func TestClonesGetTheOptionsOfOtherToolsAndNotTheirClaims(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("options-src", "options-a")
	source := lab.Secret("options-src", "cluster", map[string]string{"server": "one"})
	source.Labels = map[string]string{
		"argocd.argoproj.io/secret-type": "cluster", "app.kubernetes.io/instance": "platform", "app.kubernetes.io/managed-by": "Helm",
	}
	source.Annotations = map[string]string{
		"argocd.argoproj.io/compare-options": "IgnoreExtraneous", "argocd.argoproj.io/tracking-id": "platform:/Secret:options-src/cluster",
		"helm.sh/resource-policy": "keep", "meta.helm.sh/release-name": "platform",
	}
	_, err := e.Admin.CoreV1().Secrets("options-src").Create(t.Context(), source, metav1.CreateOptions{})
	require.NoError(t, err)
	e.Start(`
- name: options
  source: {kind: Secret, namespace: options-src, name: cluster}
  sync:
    namespaces: {include: [options-a]}
    target:
      copyLabels: [argocd.argoproj.io/secret-type, "app.kubernetes.io/*"]
      copyAnnotations: ["*"]
      annotations: {argocd.argoproj.io/sync-options: Prune=false}
`)
	has := func(labels, annotations map[string]string) {
		t.Helper()
		e.Eventually(func(context.Context) error {
			clone := e.Get("options-a", "cluster")
			if clone == nil {
				return fmt.Errorf("there is no clone")
			}
			if fmt.Sprint(labels) != fmt.Sprint(withoutMarks(clone.Labels)) || fmt.Sprint(annotations) != fmt.Sprint(withoutMarks(clone.Annotations)) {
				return fmt.Errorf("the clone has labels %v and annotations %v", clone.Labels, clone.Annotations)
			}
			return nil
		})
	}
	labels := map[string]string{"argocd.argoproj.io/secret-type": "cluster"}
	annotations := map[string]string{
		"argocd.argoproj.io/compare-options": "IgnoreExtraneous", "argocd.argoproj.io/sync-options": "Prune=false", "helm.sh/resource-policy": "keep",
	}
	has(labels, annotations)
	e.Edit("options-src", "cluster", func(s *corev1.Secret) { s.Labels["argocd.argoproj.io/secret-type"] = "repository" })
	labels["argocd.argoproj.io/secret-type"] = "repository"
	has(labels, annotations)
}
