// Package optin holds the end-to-end tests of owners who opt in to reloads
// without a rule, also in the words of other tools.
package optin

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

// syncRule is lab.ReloadRule, without the reload.
func syncRule(prefix string) string {
	rule, _, _ := strings.Cut(lab.ReloadRule(prefix), "  reload:")
	return rule
}

func TestOwnersOptInWithoutARule(t *testing.T) {
	e := newEnv(t)
	e.Sections = lab.Unpaced
	namespace := e.Stage("optin")
	e.Secret(namespace, "own", map[string]string{"used": "1", "unused": "1"})
	e.Secret(namespace, "private", map[string]string{"k": "1"})
	e.Secret(namespace, "beside", map[string]string{"k": "1"})
	both := lab.ByEnvFrom("own")
	both.Containers[0].EnvFrom = append(both.Containers[0].EnvFrom, lab.ByEnvFrom("private").Containers[0].EnvFrom...)
	e.Deployment(namespace, "auto", lab.ByEnv("own", "used"), map[string]string{mark.Reload: "Auto"})
	e.Deployment(namespace, "restart", lab.ByVolume("own"), map[string]string{mark.Reload: "Restart"})
	e.Deployment(namespace, "by-key", lab.ByEnvFrom("own"), map[string]string{mark.Reload: "Auto", mark.ReloadKeys: "used"})
	e.Deployment(namespace, "listed", both, map[string]string{mark.ReloadOn: "Secret/own, Secret/beside, Secret/later"})
	e.Deployment(namespace, "mounts", lab.ByVolume("own"), map[string]string{mark.Reload: "Auto"})
	e.Deployment(namespace, "refresh", lab.ByEnvFrom("own"), map[string]string{mark.Reload: "Refresh"})
	e.Deployment(namespace, "off", lab.ByEnvFrom("own"), map[string]string{mark.Reload: "Off", mark.ReloadOn: "Secret/own"})
	e.Deployment(namespace, "cloned", lab.ByEnvFrom("shared"), map[string]string{mark.Reload: "Auto"})
	e.Deployment(namespace, "silent", both, nil)
	e.Deployment(namespace, "garbled", lab.ByEnvFrom("own"), map[string]string{mark.Reload: "always"})
	start := e.Cluster.Mark()
	h := e.Start(syncRule("optin"))
	before := e.Adopted(h, namespace, "auto", "restart", "by-key", "listed", "cloned")
	require.Contains(t, e.HasEvent(namespace, "garbled", "UnknownReload"), mark.Reload)
	require.ElementsMatch(t, []string{"own", "beside"}, e.Reads(start, namespace), "each is read once, and none that nobody asks for")

	delays, from := e.Delays(), e.Cluster.Mark()
	e.SetKey(namespace, "own", "used", "2")
	e.Restarted(namespace, before, "Deployment/auto", "Deployment/by-key", "Deployment/listed", "Deployment/restart")
	e.Together(namespace, from, 4, delays)
	require.Equal(t, []string{"own"}, e.Reads(from, namespace))
	require.Contains(t, e.HasEvent(namespace, "auto", "Restarted"), "Secret/optin-a/own")
	e.HasNote(namespace, "own", "Reloaded", "4 restarted: Deployment/optin-a/")

	before = e.Stamps(namespace)
	e.SetKey(namespace, "own", "unused", "2")
	e.Restarted(namespace, before, "Deployment/listed", "Deployment/restart")

	before = e.Stamps(namespace)
	e.SetKey(namespace, "private", "k", "2") // of no interest to who lists another
	e.Restarted(namespace, before)
	e.SetKey(namespace, "beside", "k", "2")
	e.Restarted(namespace, before, "Deployment/listed")
	require.NotContains(t, e.Reads(start, namespace), "private")

	before = e.Stamps(namespace)
	e.Secret(namespace, "later", map[string]string{"k": "1"})
	e.Restarted(namespace, before) // first sight
	e.SetKey(namespace, "later", "k", "2")
	e.Restarted(namespace, before, "Deployment/listed")

	before = e.Stamps(namespace)
	e.Change("optin", "used", "2") // a clone, of a rule that leaves its consumers alone
	e.Restarted(namespace, before, "Deployment/cloned")
	e.Settled(h)
	require.NotContains(t, e.Reads(start, namespace), "shared", "a clone is cached")
}

// Invariant 8, where no rule says so.
func TestWhatIsNoChangeOfDataRestartsNobodyWhoOptedIn(t *testing.T) {
	e := newEnv(t)
	e.Sections = lab.Unpaced
	namespace := e.Stage("optidle")
	e.Secret(namespace, "own", map[string]string{"k": "1"})
	e.Deployment(namespace, "auto", lab.ByEnvFrom("own"), map[string]string{mark.Reload: "Auto"})
	h := e.Start(syncRule("optidle"))
	before := e.Adopted(h, namespace, "auto")
	mark := e.Cluster.Mark()

	e.Edit(namespace, "own", func(s *corev1.Secret) { s.Labels = map[string]string{"new": "label"} })
	e.Edit(namespace, "own", func(s *corev1.Secret) { s.Annotations = map[string]string{"new": "annotation"} })
	e.Restarted(namespace, before)
	e.Stays(e.NoWrites(mark))

	require.NoError(t, e.Admin.CoreV1().Secrets(namespace).Delete(t.Context(), "own", metav1.DeleteOptions{}))
	require.Contains(t, e.HasEvent(namespace, "auto", "RestartHeld"), "Secret/optidle-a/own")
	e.Secret(namespace, "own", map[string]string{"k": "1"})
	e.Restarted(namespace, before) // it came back as it was

	require.NoError(t, e.Admin.CoreV1().Secrets(namespace).Delete(t.Context(), "own", metav1.DeleteOptions{}))
	e.Secret(namespace, "own", map[string]string{"k": "2"})
	e.Restarted(namespace, before, "Deployment/auto")
	e.Settled(h)
}

// Invariants 2 and 7, where no rule says so.
func TestAChangeMissedWhileDownIsActedOnForWhoOptedIn(t *testing.T) {
	e := newEnv(t)
	e.Sections = lab.Unpaced
	namespace := e.Stage("optmissed")
	e.Secret(namespace, "own", map[string]string{"k": "1"})
	e.Secret(namespace, "same", map[string]string{"k": "1"})
	e.Deployment(namespace, "auto", lab.ByEnvFrom("own"), map[string]string{mark.Reload: "Auto"})
	e.Deployment(namespace, "other", lab.ByEnvFrom("same"), map[string]string{mark.Reload: "Auto"})
	h := e.Start(syncRule("optmissed"))
	before := e.Adopted(h, namespace, "auto", "other")
	h.Stop()
	e.SetKey(namespace, "own", "k", "2")
	e.Edit(namespace, "same", func(s *corev1.Secret) { s.Labels = map[string]string{"new": "label"} })
	h = e.Start(syncRule("optmissed"))
	e.Restarted(namespace, before, "Deployment/auto")
	e.Settled(h)

	h.Stop()
	mark := e.Cluster.Mark()
	h = e.Start(syncRule("optmissed"))
	e.Settled(h)
	require.Empty(t, e.Writes(mark), "nothing changed")
}

func TestOptingInAndOutTakesEffectAtOnce(t *testing.T) {
	e := newEnv(t)
	e.Sections = lab.Unpaced
	namespace := e.Stage("optlive")
	e.Secret(namespace, "own", map[string]string{"k": "1"})
	e.Deployment(namespace, "web", lab.ByEnvFrom("own"), nil)
	annotate := func(value string) {
		t.Helper()
		e.Eventually(func(ctx context.Context) error {
			deployment, err := e.Admin.AppsV1().Deployments(namespace).Get(ctx, "web", metav1.GetOptions{})
			if err != nil {
				return err
			}
			deployment.Annotations[mark.Reload] = value
			_, err = e.Admin.AppsV1().Deployments(namespace).Update(ctx, deployment, metav1.UpdateOptions{})
			return err
		})
	}
	h := e.Start(syncRule("optlive"))
	e.Settled(h)
	before := e.Stamps(namespace)
	e.SetKey(namespace, "own", "k", "2")
	e.Restarted(namespace, before)
	annotate("Auto")
	before = e.Adopted(h, namespace, "web")
	e.SetKey(namespace, "own", "k", "3")
	e.Restarted(namespace, before, "Deployment/web")

	before = e.Stamps(namespace)
	annotate("Off")
	e.Settled(h)
	mark := e.Cluster.Mark()
	e.SetKey(namespace, "own", "k", "4")
	e.Restarted(namespace, before)
	require.Empty(t, e.Reads(mark, namespace), "nobody asks any more")

	e.Sections = "reload: {optIn: false, minInterval: 0s}\n"
	h.Stop()
	annotate("Auto")
	e.Start(syncRule("optlive"))
	e.SetKey(namespace, "own", "k", "5")
	e.Restarted(namespace, before)
	require.Empty(t, e.Reads(mark, namespace), "the file says that nobody may")
}

func TestRunningPodsOfWhoOptedInAreRefreshed(t *testing.T) {
	e := newEnv(t)
	e.Sections = lab.Unpaced
	e.Node("optpods-node")
	namespace := e.Stage("optpods")
	e.Secret(namespace, "own", map[string]string{"k": "1"})
	spec := lab.ByVolume("own")
	spec.NodeName = "optpods-node"
	for _, name := range []string{"asks", "silent"} {
		deployment := lab.Deployment(namespace, name, 1, spec)
		if name == "asks" {
			deployment.Annotations = map[string]string{mark.Reload: "Auto"}
		}
		e.Create(namespace, deployment)
	}
	asks, silent := e.RunningPod(namespace, "asks"), e.RunningPod(namespace, "silent")
	h := e.Start(syncRule("optpods"))
	e.Settled(h)
	last, stamps := e.Refreshes(namespace), e.Stamps(namespace)
	e.SetKey(namespace, "own", "k", "2")
	e.Refreshed(namespace, asks, last[asks])
	e.Restarted(namespace, stamps)
	require.Equal(t, last[silent], e.Refreshes(namespace)[silent])
}
