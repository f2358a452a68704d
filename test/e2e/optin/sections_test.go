package optin

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/inspect"
	"github.com/headwater-k8s/headwater/internal/mark"
	reloaddecide "github.com/headwater-k8s/headwater/reload/decide"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/test/lab"
)

// sectioned are the top-level settings with one section of reload.namespaces.
func sectioned(section string) string {
	return "reload:\n  minInterval: 0s\n  namespaces:\n  - {" + section + "}\n"
}

func TestASectionReloadsAllWorkloadsOfItsNamespaces(t *testing.T) {
	e := newEnv(t)
	e.Sections = sectioned("include: [sections-a], workloads: {selector: {matchExpressions: [{key: apart, operator: DoesNotExist}]}}, " +
		"objects: {exclude: [private]}")
	e.Node("sections-node")
	namespace, other := e.Stage("sections"), e.Namespace("sections-b")
	for _, name := range []string{"own", "private"} {
		e.Secret(namespace, name, map[string]string{"k": "1"})
	}
	e.Secret(other, "own", map[string]string{"k": "1"})
	e.Deployment(namespace, "silent", lab.ByEnvFrom("own"), nil)
	e.Deployment(namespace, "off", lab.ByEnvFrom("own"), map[string]string{mark.Reload: "Off"})
	e.Deployment(namespace, "private", lab.ByEnvFrom("private"), nil)
	e.Deployment(namespace, "ruled", lab.ByEnvFrom("shared"), nil)
	e.Deployment(other, "silent", lab.ByEnvFrom("own"), nil)
	apart := lab.Deployment(namespace, "apart", 1, lab.ByEnvFrom("own"))
	apart.Labels = map[string]string{"apart": "true"}
	e.Create(namespace, apart)
	mounting := lab.ByVolume("own")
	mounting.NodeName = "sections-node"
	e.Create(namespace, lab.Deployment(namespace, "mounts", 1, mounting))
	pod := e.RunningPod(namespace, "mounts")
	start := e.Cluster.Mark()
	h := e.Reloads("sections")
	before := e.Adopted(h, namespace, "silent", "ruled")
	last := e.Refreshes(namespace)
	require.Equal(t, []string{"own"}, e.Reads(start, namespace), "it is read once, and none that the section is not about")

	e.SetKey(namespace, "own", "k", "2")
	e.SetKey(namespace, "private", "k", "2")
	e.SetKey(other, "own", "k", "2")
	e.Restarted(namespace, before, "Deployment/silent")
	e.Refreshed(namespace, pod, last[pod])
	e.Restarted(other, e.Stamps(other))
	require.NotContains(t, e.Reads(start, namespace), "private")
	require.Empty(t, e.Reads(start, other))

	var explained inspect.Explanation
	e.Answers(e.Viewer("sections-viewer"), &explained, "explain", "Deployment/sections-a/silent", "--config", e.ConfigFile(lab.ReloadRule("sections")))
	require.Len(t, explained.Uses, 1)
	require.Equal(t, reloadspec.Sections, explained.Uses[0].OptIn)
	require.Equal(t, reloadspec.StepRestart, explained.Uses[0].OnChange)
	require.Equal(t, reloaddecide.Current, explained.Uses[0].Status)
	text, _, _ := e.Command("sections-viewer", "consumers", "Secret/sections-a/own", "--config", e.ConfigFile(lab.ReloadRule("sections")))
	require.Contains(t, text, "reload.namespaces")
}

// A section, or a label of a namespace, that comes later is a first sight.
func TestASectionTakesEffectAtOnceAndRestartsNothing(t *testing.T) {
	e := newEnv(t)
	e.Sections = sectioned("include: [elsewhere]")
	namespace := e.Stage("sectlive")
	e.Secret(namespace, "watched", map[string]string{"k": "1"})
	e.Secret(namespace, "plain", map[string]string{"k": "1"})
	e.Edit(namespace, "watched", func(s *corev1.Secret) { s.Labels = map[string]string{"watch": "true"} })
	e.Deployment(namespace, "web", lab.ByEnvFrom("watched"), nil)
	e.Deployment(namespace, "plain", lab.ByEnvFrom("plain"), nil)
	h := e.Start(syncRule("sectlive"))
	e.Settled(h)
	e.SetKey(namespace, "watched", "k", "2") // before anybody asks
	e.Settled(h)

	e.Sections = sectioned("selector: {matchLabels: {reload: 'yes'}}, objects: {selector: {matchLabels: {watch: 'true'}}}")
	e.ConfigFile(syncRule("sectlive"))
	e.HasMetric(h, 1, "headwater_config_reloads_total", map[string]string{"result": "applied"})
	e.Settled(h)
	before := e.Stamps(namespace)
	label := func(value string) {
		t.Helper()
		e.Eventually(func(ctx context.Context) error {
			live, err := e.Admin.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
			if err != nil {
				return err
			}
			live.Labels["reload"] = value
			_, err = e.Admin.CoreV1().Namespaces().Update(ctx, live, metav1.UpdateOptions{})
			return err
		})
	}
	label("yes")
	require.Equal(t, before, e.Adopted(h, namespace, "web"))
	e.SetKey(namespace, "plain", "k", "2")
	e.SetKey(namespace, "watched", "k", "3")
	e.Restarted(namespace, before, "Deployment/web")

	before = e.Stamps(namespace)
	label("no")
	e.Settled(h)
	mark := e.Cluster.Mark()
	e.SetKey(namespace, "watched", "k", "4")
	e.Restarted(namespace, before)
	require.Empty(t, e.Reads(mark, namespace), "nobody asks any more")
}
