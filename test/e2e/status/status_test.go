// Package status holds the end-to-end tests of RuleStatuses.
package status

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/e2e"
	"github.com/headwater-k8s/headwater/test/harness"
)

func TestMain(m *testing.M) { os.Exit(cluster.Run(m, cluster.Options{})) }

type env struct {
	*e2e.Env

	client dynamic.ResourceInterface
}

// newEnv installs the kind.
func newEnv(t *testing.T) *env {
	t.Helper()
	e := e2e.New(t)
	require.NoError(t, harness.Apply(t.Context(), e.Cluster.Config(), filepath.Join(e2e.Root(t), "deploy", "crd.yaml")))
	client, err := dynamic.NewForConfig(e.Cluster.Config())
	require.NoError(t, err)
	return &env{e, client.Resource(rulestatus.GVR)}
}

// becomes waits until the RuleStatus is as accept wants it.
func (e *env) becomes(rule string, accept func(rulestatus.Status) bool) (status rulestatus.RuleStatus) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		found, err := e.client.Get(ctx, rule, metav1.GetOptions{})
		if err != nil {
			return err
		}
		status = rulestatus.RuleStatus{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, &status); err != nil {
			return err
		}
		if !accept(status.Status) {
			return fmt.Errorf("not as expected: %+v", status.Status)
		}
		return nil
	})
	return status
}

func ready(reason string) func(rulestatus.Status) bool {
	return func(s rulestatus.Status) bool {
		condition := s.Condition(rulestatus.Ready)
		return condition != nil && condition.Reason == reason
	}
}

// writes counts what Headwater wrote to RuleStatuses.
func (e *env) writes() int {
	e.Helper()
	requests, err := e.Cluster.Requests(e.Context(), func(r cluster.Request) bool {
		return r.User == harness.ServiceAccount && r.Resource == rulestatus.Resource && r.Code < http.StatusMultipleChoices &&
			r.Verb != "list" && r.Verb != "watch"
	})
	require.NoError(e, err)
	return len(requests)
}

func TestARuleHasAStatusThatIsWrittenOnlyWhenItChanges(t *testing.T) {
	e := newEnv(t)
	for _, name := range []string{"status-src", "status-a", "status-b"} {
		e.Namespace(name)
	}
	e.Secret("status-src", "shared", map[string]string{"k": "v"})
	h := e.StartAlone(e2e.OneRule("status"))
	first := e.becomes("status", ready("Ready"))
	require.Equal(t, 2, first.Status.Clones.Current)
	require.NotEmpty(t, first.Status.ConfigurationRevision)

	h.Stop()
	before := e.writes()
	h = e.StartAlone(e2e.OneRule("status"))
	require.NoError(t, h.Idle(t.Context()))
	e.Namespace("status-more")
	e.becomes("status", func(s rulestatus.Status) bool { return s.Clones.Current == 3 })
	require.LessOrEqual(t, e.writes()-before, 2, "nothing for the restart; the new namespace before and after it got its clone")

	h.Stop()
	h = e.StartAlone(`
- name: elsewhere
  source: {kind: Secret, namespace: status-src, name: shared}
  protect: {}
`)
	removed := e.becomes("status", ready("RuleRemoved"))
	require.True(t, removed.Status.Removed)
	require.Equal(t, map[string]int{"retained": 3}, removed.Status.Clones.ByState)
	require.NoError(t, e.Admin.CoreV1().Secrets("status-a").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	require.NoError(t, e.Admin.CoreV1().Secrets("status-b").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	require.NoError(t, e.Admin.CoreV1().Secrets("status-more").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	e.Eventually(func(ctx context.Context) error {
		_, err := e.client.Get(ctx, "status", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("still there: %w", err)
	})
	log, err := h.Log()
	require.NoError(t, err)
	require.NotContains(t, log, "is not installed")
}
