package reload

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

// withoutKey takes a key of the source of lab.ReloadRule away.
func (e *env) withoutKey(prefix, key string) {
	e.Helper()
	e.Edit(prefix+"-src", "shared", func(s *corev1.Secret) { delete(s.Data, key) })
}

func TestARequiredKeyThatIsMissingHoldsTheRestart(t *testing.T) {
	e, namespace := newStage(t, "nokey")
	optional := lab.ByEnv("shared", "used")
	optional.Containers[0].Env[0].ValueFrom.SecretKeyRef.Optional = new(true)
	e.Deployment(namespace, "by-env", lab.ByEnv("shared", "used"), nil)
	e.Deployment(namespace, "by-optional", optional, nil)
	h := e.Reloads("nokey")
	e.Settled(h)
	before := e.Stamps(namespace)

	e.withoutKey("nokey", "used")
	require.Contains(t, e.HasEvent(namespace, "by-env", "RestartHeld"), "key used of Secret/nokey-a/shared")
	e.Restarted(namespace, before, "Deployment/by-optional")
	e.Settled(h)
	e.Waits(h, 1, "missing")
	e.HasMetric(h, 1, actions, map[string]string{"action": "Restart", "result": "Held"})

	without := e.Stamps(namespace)
	e.Change("nokey", "used", "1")
	e.Cloned("nokey", "used", "1")
	e.Restarted(namespace, without, "Deployment/by-optional") // to the other, it is as it was
	e.Waits(h, 0, "missing")

	before = e.Stamps(namespace)
	e.withoutKey("nokey", "used")
	e.Restarted(namespace, before, "Deployment/by-optional")
	h.Stop() // what is held is not forgotten
	e.Change("nokey", "used", "2")
	e.Start(lab.ReloadRule("nokey"))
	e.Restarted(namespace, before, "Deployment/by-env", "Deployment/by-optional")
}

func TestARequiredObjectThatIsMissingHoldsTheRestart(t *testing.T) {
	e, namespace := newStage(t, "noobject")
	e.Secret(namespace, "own", map[string]string{"k": "1"})
	both := lab.ByEnv("shared", "used")
	both.Containers[0].EnvFrom = lab.ByEnvFrom("own").Containers[0].EnvFrom
	e.Deployment(namespace, "by-both", both, nil)
	e.Deployment(namespace, "by-env", lab.ByEnv("shared", "used"), nil)
	h := e.Reloads("noobject")
	e.Settled(h)
	before := e.Stamps(namespace)

	require.NoError(t, e.Admin.CoreV1().Secrets(namespace).Delete(t.Context(), "own", metav1.DeleteOptions{}))
	e.Settled(h) // it has seen that
	e.Change("noobject", "used", "2")
	require.Contains(t, e.HasEvent(namespace, "by-both", "RestartHeld"), "Secret/noobject-a/own")
	e.Restarted(namespace, before, "Deployment/by-env")

	e.Secret(namespace, "own", map[string]string{"k": "1"})
	e.Restarted(namespace, before, "Deployment/by-both", "Deployment/by-env")
}

func TestDataThatLostItsValuesHoldsTheRestart(t *testing.T) {
	for sentence, test := range map[string]struct {
		prefix string
		pods   corev1.PodSpec
		empty  func(*corev1.Secret)
	}{
		"no key is left of what is read whole": {"gonekeys", lab.ByEnvFrom("own"), func(s *corev1.Secret) { s.Data = nil }},
		"all that is read whole is empty": {"gonevalues", lab.ByEnvFrom("own"), func(s *corev1.Secret) {
			s.Data = map[string][]byte{"k": nil, "other": nil}
		}},
		"the only key that is read is empty": {"gonevalue", lab.ByEnv("own", "k"), func(s *corev1.Secret) { s.Data["k"] = nil }},
	} {
		t.Run(sentence, func(t *testing.T) {
			e, namespace := newStage(t, test.prefix)
			e.Secret(namespace, "own", map[string]string{"k": "1", "other": "1"})
			e.Secret(namespace, "more", map[string]string{"k": "1"})
			test.pods.Containers[0].Env = append(test.pods.Containers[0].Env, lab.ByEnv("more", "k").Containers[0].Env...)
			e.Deployment(namespace, "reads-it", test.pods, map[string]string{mark.Reload: "Auto"})
			h := e.Start(lab.ReloadRule(test.prefix))
			e.Adopted(h, namespace, "reads-it")
			before := e.Stamps(namespace)

			e.Edit(namespace, "own", test.empty)
			require.Contains(t, e.HasEvent(namespace, "reads-it", "RestartHeld"), "Secret/"+namespace+"/own")
			e.Edit(namespace, "more", func(s *corev1.Secret) { s.Data["k"] = []byte("2") })
			e.Settled(h)
			e.Waits(h, 1, "missing")
			e.Restarted(namespace, before)

			h.Stop() // what is held is not forgotten
			h = e.Start(lab.ReloadRule(test.prefix))
			e.Waits(h, 1, "missing")
			e.Restarted(namespace, before)

			e.Edit(namespace, "own", func(s *corev1.Secret) { s.Data = map[string][]byte{"k": []byte("3")} })
			e.Restarted(namespace, before, "Deployment/reads-it")
			e.Waits(h, 0, "missing")
		})
	}
}

func TestAConfigMapThatLostItsKeysHoldsTheRestart(t *testing.T) {
	e, namespace := newStage(t, "goneconfig")
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own"}, Data: map[string]string{"K": "1", "OTHER": "1"}}
	e.Create(namespace, config)
	pods := lab.ByEnv("shared", "used")
	pods.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "own"}}}}
	e.Deployment(namespace, "reads-it", pods, map[string]string{mark.Reload: "Auto"})
	h := e.Start(lab.ReloadRule("goneconfig"))
	e.Adopted(h, namespace, "reads-it")
	before := e.Stamps(namespace)
	write := func(data map[string]string) {
		config.Data = data
		_, err := e.Admin.CoreV1().ConfigMaps(namespace).Update(t.Context(), config, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	write(nil)
	require.Contains(t, e.HasEvent(namespace, "reads-it", "RestartHeld"), "ConfigMap/"+namespace+"/own")
	e.Change("goneconfig", "used", "2")
	e.Cloned("goneconfig", "used", "2")
	e.Settled(h)
	e.Waits(h, 1, "missing")
	e.Restarted(namespace, before)
	write(map[string]string{"K": "", "OTHER": ""})
	e.Settled(h)
	e.Restarted(namespace, before)
	write(map[string]string{"K": "2", "OTHER": ""})
	e.Restarted(namespace, before, "Deployment/reads-it")
}

func TestASourceMadeAnewWithTheSameDataRestartsNothing(t *testing.T) {
	e, namespace := newStage(t, "recreated")
	rule := strings.ReplaceAll(lab.ReloadRule("recreated"), "sync: {", "sync: {onSourceDeleted: Delete, ")
	e.Deployment(namespace, "by-env", lab.ByEnv("shared", "used"), nil)
	h := e.Start(rule)
	e.Cloned("recreated", "used", "1")
	e.Settled(h)
	before := e.Stamps(namespace)
	remove := func() {
		require.NoError(t, e.Admin.CoreV1().Secrets("recreated-src").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
		e.HasNone(namespace, "shared")
	}

	remove()
	e.HasEvent(namespace, "by-env", "RestartHeld")
	e.Secret("recreated-src", "shared", map[string]string{"used": "1", "unused": "2"})
	e.Cloned("recreated", "unused", "2")
	e.Restarted(namespace, before)

	remove()
	e.Secret("recreated-src", "shared", map[string]string{"used": "2", "unused": "2"})
	e.Restarted(namespace, before, "Deployment/by-env")
}

// Headwater reports nothing as missing in a namespace that is being deleted.
func TestANamespaceThatGoesHoldsNoRestart(t *testing.T) {
	e, namespace := newStage(t, "going")
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	e.Secret(namespace, "own", map[string]string{"k": "1"})
	for _, name := range names {
		e.Deployment(namespace, name, lab.ByEnvFrom("own"), map[string]string{mark.Reload: "Auto"})
	}
	h := e.StartAlone(lab.ReloadRule("going"))
	e.Adopted(h, namespace, names...)
	require.NoError(t, e.Admin.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}))
	e.Eventually(func(ctx context.Context) error {
		_, err := e.Admin.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		return lab.Gone(err)
	})
	e.Settled(h)
	log, err := h.Log()
	require.NoError(t, err)
	require.NotContains(t, log, "restart held")
	require.NotContains(t, log, "Server rejected event")
}
