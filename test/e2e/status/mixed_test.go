package status

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/test/lab"
)

// A pipeline that waits for a revision of the configuration sees nothing of another one.
func TestAStatusIsAboutOneConfiguration(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("one-src", "one-a", "one-b")
	e.Secret("one-src", "shared", map[string]string{"k": "v"})
	const rule = "\n- name: one\n  source: {kind: Secret, namespace: one-src, name: shared}\n  sync: {namespaces: {include: [NAMES]}, onNamespaceUnmatched: Retain}\n"
	files := map[int]string{1: strings.Replace(rule, "NAMES", "one-a", 1), 2: strings.Replace(rule, "NAMES", "one-a, one-b", 1)}
	wants := map[string]int{}
	e.StartAlone(files[1])
	e.becomes("one", ready("Ready"))
	watched, err := e.client.Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer watched.Stop()
	for i := range 4 {
		clones := 2 - i%2
		raw, err := os.ReadFile(e.ConfigFile(files[clones]))
		require.NoError(t, err)
		revision := config.RevisionOf(raw)
		wants[revision] = clones
		e.becomes("one", func(s rulestatus.Status) bool { return s.ConfigurationRevision == revision })
	}
	e.becomes("one", func(s rulestatus.Status) bool { return s.Clones.Total == 1 && s.Clones.Current == 1 })
	marker := &unstructured.Unstructured{Object: map[string]any{}}
	marker.SetGroupVersionKind(rulestatus.GVR.GroupVersion().WithKind(rulestatus.Kind))
	marker.SetName("last")
	_, err = e.client.Create(t.Context(), marker, metav1.CreateOptions{})
	require.NoError(t, err)
	seen := map[string]bool{}
	for event := range watched.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		require.True(t, ok, "%v", event)
		if object.GetName() == "last" {
			break
		}
		var status rulestatus.RuleStatus
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &status))
		if want, known := wants[status.Status.ConfigurationRevision]; known && object.GetName() == "one" {
			seen[status.Status.ConfigurationRevision] = true
			require.Equal(t, want, status.Status.Clones.Total, "%+v", status.Status)
		}
	}
	require.Len(t, seen, 2)
	e.Eventually(func(ctx context.Context) error {
		err := e.client.Delete(ctx, "last", metav1.DeleteOptions{})
		return lab.ErrorIf(lab.IgnoreGone(err) != nil, "%s", fmt.Sprint(err))
	})
}
