package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/e2e"
	"github.com/headwater-k8s/headwater/test/harness"
)

// configMap has ConfigMap headwater hold text.
func (e *env) configMap(text string) {
	e.Helper()
	api := e.Admin.CoreV1().ConfigMaps(harness.Namespace)
	desired := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "headwater"}, Data: map[string]string{"headwater.yaml": text}}
	_, err := api.Update(e.Context(), desired, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = api.Create(e.Context(), desired, metav1.CreateOptions{})
	}
	require.NoError(e, err)
}

// hasLastValid waits until the copy for commands holds text.
func (e *env) hasLastValid(text string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		found, err := e.Admin.CoreV1().ConfigMaps(harness.Namespace).Get(ctx, "headwater-last-valid", metav1.GetOptions{})
		if err == nil && found.Data["headwater.yaml"] != text {
			err = fmt.Errorf("it holds %q", found.Data["headwater.yaml"])
		}
		return err
	})
}

// write replaces file at once, so that nobody reads half of it.
func (e *env) write(file, text string) {
	e.Helper()
	require.NoError(e, os.WriteFile(file+".new", []byte(text), 0o600))
	require.NoError(e, os.Rename(file+".new", file))
}

func (e *env) read(file string) string {
	e.Helper()
	text, err := os.ReadFile(file)
	require.NoError(e, err)
	return string(text)
}

func TestCommandsFallBackToTheLastValidConfiguration(t *testing.T) {
	e := newEnv(t)
	e.Cleanup(func() {
		for _, name := range []string{"headwater", "headwater-last-valid"} {
			err := e.Admin.CoreV1().ConfigMaps(harness.Namespace).Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
			require.True(t, err == nil || apierrors.IsNotFound(err), err)
		}
	})
	e.Namespace("valid-src")
	e.Namespace("valid-a")
	e.Secret("valid-src", "shared", map[string]string{"k": "v"})
	e.Sections = "protect: {engine: Policy}\n" // or the webhook would refuse the broken one
	rules := e2e.OneRule("valid") + "  protect: {}\n  reload: {}\n"
	e.Deployment("valid-a", "web", corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}, nil)
	valid := e.read(e.ConfigFile(rules))
	e.configMap(valid)
	h := e.Start(rules)
	e.hasLastValid(valid)
	e.HasClone("valid-a", "shared", map[string]string{"k": "v"})

	broken := valid + "rulez: []\n"
	e.configMap(broken)
	file := filepath.Join(e.Dir, "headwater.yaml")
	e.write(file, broken)
	note := e.HasEvent(harness.Namespace, "headwater", "ConfigInvalid")
	require.Contains(t, note, "rulez")
	e.isAboutTheConfigMap()

	viewer := e.Viewer("valid-viewer")
	for _, command := range [][]string{
		{"status", "--survey"},
		{"plan"},
		{"explain", "Deployment/valid-a/web"},
		{"consumers", "Secret/valid-src/shared"},
		{"who-can-edit", "valid"},
	} {
		out, told, exit := e.Command(viewer, command...)
		require.Zero(t, exit, "%s: %s", command, told)
		require.NotEmpty(t, out)
		require.Equal(t, 1, strings.Count(told, "\n"), "one line of warning: %s", told)
		require.Contains(t, told, "rulez: unknown key")
		require.Contains(t, told, "ConfigMap headwater-system/headwater-last-valid")
	}
	_, told, exit := e.Command(viewer, "approve", "valid", "--dry-run")
	require.Equal(t, 1, exit)
	require.Contains(t, told, "nothing of rule \"valid\" is held")
	_, told, exit = e.Command(viewer, "plan", "--config", file)
	require.Equal(t, 1, exit)
	require.NotContains(t, told, "last valid")

	e.HasMetric(h, 1, "headwater_protection_proven", map[string]string{"rule": "valid"})
	e.SettledFor(h, e2e.Settle) // which also records the proof, apart from its queues
	mark := e.Cluster.Mark()
	edited := valid + "# an edit\n"
	e.configMap(edited)
	e.write(file, edited)
	e.hasLastValid(edited)
	require.Len(t, e.Writes(mark), 1, "one write for a new configuration")
	h.Stop()

	mark = e.Cluster.Mark()
	h = e.Start(rules + "# an edit\n")
	e.SettledFor(h, e2e.Settle)
	require.Empty(t, e.Writes(mark), "nothing changed")
	elsewhere := edited + "# not in the ConfigMap\n"
	e.write(file, elsewhere)
	e.HasMetric(h, 1, "headwater_config_reloads_total", map[string]string{"result": "applied"})
	e.Holds(e2e.Settle, e.NoWrites(mark))
}

func (e *env) isAboutTheConfigMap() {
	e.Helper()
	events, err := e.Admin.EventsV1().Events(harness.Namespace).List(e.Context(), metav1.ListOptions{FieldSelector: "reason=ConfigInvalid"})
	require.NoError(e, err)
	for _, event := range events.Items {
		if event.Regarding.Kind == "ConfigMap" && event.Regarding.UID != "" {
			return
		}
	}
	require.NoError(e, errors.New("no Event about a ConfigMap"))
}
