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

// Three credentials change one after the other, and the leader changes meanwhile. The one
// restart comes after the last of them.
func TestSeveralChangesWithinALongDebounceAreOneRestart(t *testing.T) {
	for name, ask := range map[string]struct {
		annotations map[string]string
		rule        string
	}{
		"ruled":    {rule: "10m"},
		"own":      {annotations: map[string]string{mark.Reload: "Auto", mark.ReloadDebounce: "10m"}},
		"reloader": {annotations: map[string]string{mark.ReloaderAuto: "true", mark.ReloaderPausePeriod: "10m"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Sections = "reload: {minInterval: 0s, maxRestartsPerHour: 0, compatibility: [Reloader]}\n"
			namespace := e.Stage(name)
			rule, changed := syncRule(name), func(key, value string) { e.SetKey(namespace, key, key, value) }
			keys := []string{"user", "password", "host"}
			var spec corev1.PodSpec
			if ask.rule != "" {
				rule = strings.Replace(lab.ReloadRule(name), "debounce: 0s", "debounce: "+ask.rule, 1)
				e.Edit(name+"-src", "shared", func(s *corev1.Secret) {
					for _, key := range keys {
						s.Data[key] = []byte("1")
					}
				})
				changed = func(key, value string) { e.Change(name, key, value) }
				spec = lab.ByEnvFrom("shared")
			} else {
				for _, key := range keys {
					e.Secret(namespace, key, map[string]string{key: "1"})
				}
				spec = lab.ByEnvFrom(keys[0])
				for _, key := range keys[1:] {
					spec.Containers[0].EnvFrom = append(spec.Containers[0].EnvFrom, lab.ByEnvFrom(key).Containers[0].EnvFrom...)
				}
			}
			e.Deployment(namespace, "web", spec, ask.annotations)
			h := e.StartAlone(rule)
			before := e.Adopted(h, namespace, "web")
			for i, key := range keys {
				changed(key, "2")
				if i == 1 { // the next leader saw none of them
					e.HasEvent(namespace, "web", "RestartWaits")
					h.Kill()
					h = e.StartAlone(rule)
				}
			}
			e.Waits(h, 1, "debounce")
			require.Equal(t, before, e.Stamps(namespace))
			out, problem, exit := e.Command(e.Viewer(name+"-viewer"), "explain", "deployment/web", "--namespace", namespace, "--config", e.Dir+"/headwater.yaml")
			require.Zero(t, exit, problem)
			require.Contains(t, out, "it waits until ")
			require.Contains(t, out, "more changes may follow")
			if ask.rule != "" {
				e.ConfigFile(strings.Replace(rule, ask.rule, "1s", 1))
			} else {
				e.debounced(namespace, "web", ask.annotations)
			}
			e.Restarted(namespace, before, "Deployment/web")
			now := e.Stamps(namespace)
			e.SettledFor(h, lab.Settle)
			require.Equal(t, now, e.Stamps(namespace), "one restart")
		})
	}
}

// debounced shortens the debounce that the owner of a Deployment asks for.
func (e *env) debounced(namespace, name string, asked map[string]string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		deployment, err := e.Admin.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, key := range []string{mark.ReloadDebounce, mark.ReloaderPausePeriod} {
			if asked[key] != "" {
				deployment.Annotations[key] = "1s"
			}
		}
		_, err = e.Admin.AppsV1().Deployments(namespace).Update(ctx, deployment, metav1.UpdateOptions{})
		return err
	})
}
