package service

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

const configMapsAlone = `
- name: settings
  source: {kind: ConfigMap, namespace: bare-src, name: settings}
  sync: {namespaces: {include: [bare-team]}, history: 2}
  protect: {}
  reload: {}
`

// secretRequests are those of Headwater's accounts about Secrets since mark, outside its
// own namespace.
func secretRequests(ctx context.Context, c *cluster.Cluster, mark cluster.Mark) ([]cluster.Request, error) {
	return c.Since(ctx, mark, func(r cluster.Request) bool {
		return (r.User == lab.ServiceAccount || r.User == prober) && r.Resource == "secrets" && r.Namespace != lab.Namespace
	})
}

func TestConfigMapsAloneNeedNoPermissionsOnSecrets(t *testing.T) {
	e := newEnv(t)
	require.NoError(t, lab.Apply(t.Context(), e.Cluster.Config(), filepath.Join(lab.Root(t), "test", "deploy", "testdata", "configmaps.golden.yaml")))
	e.Sections = "reload: {optIn: false}\n"
	e.Namespace("bare-src")
	e.Namespace("bare-team")
	configMaps := e.Admin.CoreV1().ConfigMaps("bare-src")
	_, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"k": "v"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	limited := e.Client(lab.ServiceAccount)
	e.Eventually(func(ctx context.Context) error { // the authorizer hears of other rights a moment later
		_, err := limited.CoreV1().Secrets("bare-team").List(ctx, metav1.ListOptions{})
		return lab.ErrorIf(!apierrors.IsForbidden(err), "the test's own rights: %v", err)
	})
	start := e.Cluster.Mark()

	options := e.Options(configMapsAlone)
	options.Args = append(options.Args, "--without-secrets")
	h := e.Launch(options)
	require.NoError(t, h.Ready(t.Context()))
	hasClone := func(value string) {
		t.Helper()
		e.Eventually(func(ctx context.Context) error {
			clone, err := e.Admin.CoreV1().ConfigMaps("bare-team").Get(ctx, "settings", metav1.GetOptions{})
			return errors.Join(err, lab.ErrorIf(clone.Data["k"] != value, "the clone has %q, not %q", clone.Data["k"], value))
		})
	}
	hasClone("v")
	e.HasMetric(h, 1, "headwater_protection_proven", map[string]string{"rule": "settings"})
	edit := func(value string) {
		t.Helper()
		source, err := configMaps.Get(t.Context(), "settings", metav1.GetOptions{})
		require.NoError(t, err)
		source.Data["k"] = value
		_, err = configMaps.Update(t.Context(), source, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	edit("w")
	hasClone("w")

	// A file that needs Secrets changes nothing.
	e.ConfigFile(configMapsAlone + `
- name: token
  source: {kind: Secret, namespace: bare-src, name: token}
  sync: {}
`)
	e.HasMetric(h, 0, "headwater_config_valid", nil)
	e.HasNote(lab.Namespace, lab.Namespace, "ConfigInvalid", "rules[1].source.kind")
	edit("x")
	hasClone("x")
	e.ConfigFile(configMapsAlone)
	e.HasMetric(h, 1, "headwater_config_valid", nil)

	asked, err := secretRequests(t.Context(), e.Cluster, start)
	require.NoError(t, err)
	for _, request := range asked {
		require.NotEqual(t, lab.ServiceAccount, request.User, "%+v", request)
	}
	denied, err := e.Cluster.Since(t.Context(), start, func(r cluster.Request) bool {
		return r.User == lab.ServiceAccount && r.Code == http.StatusForbidden
	})
	require.NoError(t, err)
	require.Empty(t, denied)

	user := e.Viewer("bare-viewer")
	out, problem, exit := e.Command(user, "plan", "--config", e.ConfigFile(configMapsAlone))
	require.Zero(t, exit, problem+out)
}

func TestAFileThatNeedsSecretsStartsNothingWithoutThem(t *testing.T) {
	e := newEnv(t)
	options := e.Options("- {name: token, source: {kind: Secret, namespace: bare-src, name: token}, sync: {}}\n")
	options.Args = append(options.Args, "--without-secrets")
	h, err := lab.Start(options)
	require.NoError(t, err)
	t.Cleanup(h.Kill)
	e.Eventually(func(context.Context) error {
		log, err := h.Log()
		if err != nil {
			return err
		}
		return lab.ErrorIf(!strings.Contains(log, "rules[0].source.kind: Headwater runs without permissions on Secrets"), "the log does not say why")
	})
}
