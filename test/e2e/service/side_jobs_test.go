// Package service holds the end-to-end tests of Headwater as a whole: the
// process and its surroundings, its installation, its permissions, and the main
// job.
package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/test/lab"
)

const sideRules = `
- name: side-settings
  source: {kind: ConfigMap, namespace: side-src, name: settings}
  sync: {namespaces: {include: [side-a]}, onSourceDeleted: Delete}
  protect: {}
  reload: {debounce: 0s}
- name: side-passing
  source: {kind: Secret, namespace: side-src, name: passing}
  sync: {namespaces: {include: [side-a]}, onSourceDeleted: Delete}
`

// sideJobs has Headwater do what the main job has no occasion for: it clones a
// ConfigMap, restarts workloads of other kinds, puts a policy right, removes
// clones, and then all that protects.
func sideJobs(e *env) {
	e.Helper()
	ctx := e.Context()
	require.NoError(e, lab.Apply(ctx, e.Cluster.Config(), "testdata/side-jobs.yaml"))
	e.Sections = lab.EveryDelete
	h := e.Start(sideRules)
	e.Settled(h)
	before := e.Stamps("side-a")
	sources := e.Admin.CoreV1().ConfigMaps("side-src")
	_, err := sources.Patch(ctx, "settings", types.MergePatchType, []byte(`{"data": {"level": "high"}}`), metav1.PatchOptions{})
	require.NoError(e, err)
	e.Restarted("side-a", before, "StatefulSet/set", "DaemonSet/daemon", "CronJob/cron")

	bindings := e.Admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	loosened := []byte(`{"spec": {"validationActions": ["Audit"]}}`)
	_, err = bindings.Patch(ctx, "headwater-sources", types.MergePatchType, loosened, metav1.PatchOptions{})
	require.NoError(e, err)
	e.Eventually(func(ctx context.Context) error {
		binding, err := bindings.Get(ctx, "headwater-sources", metav1.GetOptions{})
		if err == nil && binding.Spec.ValidationActions[0] != "Deny" {
			err = fmt.Errorf("validationActions are %v", binding.Spec.ValidationActions)
		}
		return err
	})

	require.NoError(e, sources.Delete(ctx, "settings", metav1.DeleteOptions{}))
	require.NoError(e, e.Admin.CoreV1().Secrets("side-src").Delete(ctx, "passing", metav1.DeleteOptions{}))
	e.HasNone("side-a", "passing")
	e.Eventually(func(ctx context.Context) error {
		_, err := e.Admin.CoreV1().ConfigMaps("side-a").Get(ctx, "settings", metav1.GetOptions{})
		return lab.Gone(err)
	})
	e.ConfigFile("  []\n")
	e.Eventually(func(ctx context.Context) error {
		webhooks, err := e.Admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
		return errors.Join(err, lab.ErrorIf(len(webhooks.Items) > 0, "%d webhooks are registered", len(webhooks.Items)))
	})
	e.Settled(h)
	h.Stop()
}
