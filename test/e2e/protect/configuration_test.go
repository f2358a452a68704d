package protect

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/lab"
)

const (
	configHeader = "apiVersion: headwater.dev/v1alpha1\nkind: Config\n"
	noRules      = configHeader + "rules: []\nremovedRules: [config]\n"
	nameTwice    = configHeader + `rules:
- {name: a, source: {kind: Secret, namespace: p, name: x}, sync: {}}
- {name: a, source: {kind: Secret, namespace: p, name: y}, sync: {}}
rulez: []
`
)

// deployer applies ConfigMaps as helm upgrade does, by server-side apply.
type deployer struct {
	client   kubernetes.Interface
	warnings *warningRecorder
}

func (e *env) deployer() deployer {
	e.Helper()
	warnings := &warningRecorder{}
	config := e.Config("admin", "system:masters")
	config.WarningHandler = warnings
	client, err := kubernetes.NewForConfig(config)
	require.NoError(e, err)
	e.Cleanup(func() {
		err := client.CoreV1().ConfigMaps(lab.Namespace).Delete(context.WithoutCancel(e.Context()), "headwater", metav1.DeleteOptions{})
		if !apierrors.IsNotFound(err) {
			require.NoError(e, err)
		}
	})
	return deployer{client, warnings}
}

// apply has ConfigMap namespace/name, of a chart of this version, hold text.
func (d deployer) apply(ctx context.Context, namespace, name, version, text string, dryRun ...string) error {
	d.warnings.texts = nil
	configMap := applycorev1.ConfigMap(name, namespace).
		WithLabels(map[string]string{"app.kubernetes.io/version": version}).WithData(map[string]string{"headwater.yaml": text})
	_, err := d.client.CoreV1().ConfigMaps(namespace).Apply(ctx, configMap, metav1.ApplyOptions{FieldManager: "helm", Force: true, DryRun: dryRun})
	return err
}

// configure applies ConfigMap headwater of version 1.
func (d deployer) configure(ctx context.Context, text string, dryRun ...string) error {
	return d.apply(ctx, lab.Namespace, "headwater", "1", text, dryRun...)
}

// refuses waits until an invalid configuration is refused, also as a dry run.
func (d deployer) refuses(e *env) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		return lab.ErrorIf(d.configure(ctx, nameTwice, metav1.DryRunAll) == nil, "a dry run of an invalid configuration passes")
	})
}

var configRule = lab.Rule("config", "protect: {}")

func TestAnInvalidConfigurationIsRefusedAtAdmission(t *testing.T) {
	e := newEnv(t)
	e.Namespace("config-src")
	d, ctx := e.deployer(), t.Context()
	h := e.Start(configRule)
	d.refuses(e)

	err := d.configure(ctx, nameTwice)
	require.True(t, apierrors.IsForbidden(err), err)
	require.ErrorContains(t, err, `admission webhook "configuration.protect.headwater.dev" denied the request`)
	require.ErrorContains(t, err, `headwater.yaml:5: rules[1].name: "a" is the name of the rule in line 4 already; choose another`)
	require.ErrorContains(t, err, `headwater.yaml:6: rulez: unknown key; did you mean "rules"?`)

	require.NoError(t, d.configure(ctx, noRules))
	require.Empty(t, d.warnings.texts)
	require.Error(t, d.configure(ctx, nameTwice), "an update is refused as a creation is")

	const note = "headwater.yaml:5: safety.maxDeleteFraction: never holds the removal of clones, however many go at once"
	require.NoError(t, d.configure(ctx, noRules+"safety: {maxDeleteFraction: 1}\n"))
	require.Equal(t, []string{note}, d.warnings.texts)
	require.NoError(t, d.configure(ctx, configHeader+"rules: []\n"))
	require.Len(t, d.warnings.texts, 1)
	require.Contains(t, d.warnings.texts[0], "the configuration is held: it has no rule. Put back, or name in removedRules: config;")

	h.Stop()
	e.Start(configRule)
	d.refuses(e) // after a restart, too
	configMaps := d.client.CoreV1().ConfigMaps(lab.Namespace)
	require.NoError(t, configMaps.Delete(ctx, "headwater", metav1.DeleteOptions{}), "it may be deleted")
}

func TestAConfigurationOfAnotherVersionOnlyWarns(t *testing.T) {
	e := newEnv(t)
	e.Namespace("config-src")
	d, ctx := e.deployer(), t.Context()
	h := e.Start(configRule)
	d.refuses(e)
	require.NoError(t, d.configure(ctx, noRules))

	require.NoError(t, d.apply(ctx, lab.Namespace, "headwater", "2", configHeader+"novelty: {}\n"), "the next version may know the key")
	require.Len(t, d.warnings.texts, 2, d.warnings.texts)
	require.Contains(t, d.warnings.texts[1], "headwater.yaml:3: novelty: unknown key")
	require.Error(t, d.apply(ctx, lab.Namespace, "headwater", "2", configHeader+"novelties: {}\n"), "an edit is no upgrade")
	require.NoError(t, d.apply(ctx, lab.Namespace, "headwater", "3", configHeader+"novelty: {}\n"))
	require.Empty(t, d.warnings.texts, "only the label changes")

	h.Stop()
	require.NoError(t, d.configure(ctx, nameTwice), "while nobody serves, everything passes")
}

// Invariant: no write but that of the configuration ever calls the webhook.
func TestOtherConfigMapsAreNotChecked(t *testing.T) {
	e := newEnv(t)
	e.Namespace("config-src")
	elsewhere := e.Namespace("config-elsewhere")
	d := e.deployer()
	h := e.Start(configRule)
	d.refuses(e)
	before, err := h.Metric(t.Context(), "headwater_protect_configurations_total", nil)
	require.NoError(t, err)
	require.Positive(t, before)
	for _, other := range [][2]string{{lab.Namespace, "other"}, {elsewhere, "headwater"}} {
		require.NoError(t, d.apply(t.Context(), other[0], other[1], "1", nameTwice), fmt.Sprint(other))
		require.NoError(t, d.client.CoreV1().ConfigMaps(other[0]).Delete(t.Context(), other[1], metav1.DeleteOptions{}))
	}
	after, err := h.Metric(t.Context(), "headwater_protect_configurations_total", nil)
	require.NoError(t, err)
	require.InDelta(t, before, after, 0)
}
