package service

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/lab"
)

// configMap has ConfigMap headwater hold text.
func (e *env) configMap(text string) {
	e.Helper()
	api := e.Admin.CoreV1().ConfigMaps(lab.Namespace)
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
		found, err := e.Admin.CoreV1().Secrets(lab.Namespace).Get(ctx, "headwater-last-valid", metav1.GetOptions{})
		return errors.Join(err, lab.ErrorIf(string(found.Data["headwater.yaml"]) != text, "it holds %q", found.Data["headwater.yaml"]))
	})
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
		err := e.Admin.CoreV1().ConfigMaps(lab.Namespace).Delete(context.WithoutCancel(t.Context()), "headwater", metav1.DeleteOptions{})
		require.NoError(t, lab.IgnoreGone(err))
	})
	e.Namespace("valid-src")
	e.Namespace("valid-a")
	e.Secret("valid-src", "shared", map[string]string{"k": "v"})
	e.Sections = "protect: {engine: Policy}\n" // or the webhook would refuse the broken one
	rules := lab.OneRule("valid") + "  protect: {}\n  reload: {}\n"
	e.Deployment("valid-a", "web", corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}, nil)
	valid := e.read(e.ConfigFile(rules))
	e.configMap(valid)
	h := e.Start(rules)
	e.hasLastValid(valid)
	e.HasClone("valid-a", "shared", map[string]string{"k": "v"})

	broken := valid + "rulez: []\n"
	e.configMap(broken)
	file := filepath.Join(e.Dir, "headwater.yaml")
	require.NoError(t, lab.Replace(file, broken))
	note := e.HasEvent(lab.Namespace, "headwater", "ConfigInvalid")
	require.Contains(t, note, "rulez")
	e.isAboutTheConfigMap()

	viewer := e.Viewer("valid-viewer")
	for _, command := range [][]string{
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
		require.Contains(t, told, "Secret headwater-system/headwater-last-valid")
	}
	_, told, exit := e.Command(viewer, "plan", "--config", file)
	require.Equal(t, 1, exit)
	require.NotContains(t, told, "last valid")

	e.HasEvent("valid-src", "shared", "ProtectionProven") // which comes after the record
	e.SettledFor(h, lab.Settle)
	mark := e.Cluster.Mark()
	edited := valid + "# an edit\n"
	e.configMap(edited)
	require.NoError(t, lab.Replace(file, edited))
	e.hasLastValid(edited)
	e.WritesOnly(mark, 1)
	h.Stop()

	mark = e.Cluster.Mark()
	h = e.Start(rules + "# an edit\n")
	e.SettledFor(h, lab.Settle)
	require.Empty(t, e.Writes(mark), "nothing changed")
	elsewhere := edited + "# not in the ConfigMap\n"
	require.NoError(t, lab.Replace(file, elsewhere))
	e.hasLastValid(elsewhere)
}

func (e *env) isAboutTheConfigMap() {
	e.Helper()
	events := lab.List(e, e.Admin.EventsV1().Events(lab.Namespace).List, metav1.ListOptions{FieldSelector: "reason=ConfigInvalid"})
	for _, event := range events.Items {
		if event.Regarding.Kind == "ConfigMap" && event.Regarding.UID != "" {
			return
		}
	}
	require.NoError(e, errors.New("no Event about a ConfigMap"))
}
