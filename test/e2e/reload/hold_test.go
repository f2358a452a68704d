package reload

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/e2e"
	"github.com/headwater-k8s/headwater/test/harness"
)

// withoutKey takes a key of the source of e2e.ReloadRule away.
func (e *env) withoutKey(prefix, key string) {
	e.Helper()
	e.Edit(prefix+"-src", "shared", func(s *corev1.Secret) { delete(s.Data, key) })
}

func TestARequiredKeyThatIsMissingHoldsTheRestart(t *testing.T) {
	e := newEnv(t)
	namespace := e.Stage("nokey")
	optional := harness.ByEnv("shared", "used")
	optional.Containers[0].Env[0].ValueFrom.SecretKeyRef.Optional = new(true)
	e.Deployment(namespace, "by-env", harness.ByEnv("shared", "used"), nil)
	e.Deployment(namespace, "by-optional", optional, nil)
	h := e.Start(e2e.ReloadRule("nokey"))
	e.Cloned("nokey", "used", "1")
	e.Settled(h)
	before := e.Stamps(namespace)

	e.withoutKey("nokey", "used")
	require.Contains(t, e.HasEvent(namespace, "by-env", "RestartHeld"), "key used of Secret/nokey-a/shared")
	e.Restarted(namespace, before, "Deployment/by-optional")
	e.Settled(h)

	without := e.Stamps(namespace)
	e.Change("nokey", "used", "1")
	e.Cloned("nokey", "used", "1")
	e.Restarted(namespace, without, "Deployment/by-optional") // to the other, it is as it was

	before = e.Stamps(namespace)
	e.withoutKey("nokey", "used")
	e.Restarted(namespace, before, "Deployment/by-optional")
	h.Stop() // what is held is not forgotten
	e.Change("nokey", "used", "2")
	e.Start(e2e.ReloadRule("nokey"))
	e.Restarted(namespace, before, "Deployment/by-env", "Deployment/by-optional")
}

func TestARequiredObjectThatIsMissingHoldsTheRestart(t *testing.T) {
	e := newEnv(t)
	namespace := e.Stage("noobject")
	e.Secret(namespace, "own", map[string]string{"k": "1"})
	both := harness.ByEnv("shared", "used")
	both.Containers[0].EnvFrom = harness.ByEnvFrom("own").Containers[0].EnvFrom
	e.Deployment(namespace, "by-both", both, nil)
	e.Deployment(namespace, "by-env", harness.ByEnv("shared", "used"), nil)
	h := e.Start(e2e.ReloadRule("noobject"))
	e.Cloned("noobject", "used", "1")
	e.Settled(h)
	before := e.Stamps(namespace)

	require.NoError(t, e.Admin.CoreV1().Secrets(namespace).Delete(t.Context(), "own", metav1.DeleteOptions{}))
	e.Change("noobject", "used", "2")
	require.Contains(t, e.HasEvent(namespace, "by-both", "RestartHeld"), "Secret/noobject-a/own")
	e.Restarted(namespace, before, "Deployment/by-env")

	e.Secret(namespace, "own", map[string]string{"k": "1"})
	e.Restarted(namespace, before, "Deployment/by-both", "Deployment/by-env")
}

func TestASourceMadeAnewWithTheSameDataRestartsNothing(t *testing.T) {
	e := newEnv(t)
	namespace := e.Stage("anew")
	rule := strings.ReplaceAll(e2e.ReloadRule("anew"), "sync: {", "sync: {onSourceDeleted: Delete, ")
	e.Deployment(namespace, "by-env", harness.ByEnv("shared", "used"), nil)
	h := e.Start(rule)
	e.Cloned("anew", "used", "1")
	e.Settled(h)
	before := e.Stamps(namespace)
	remove := func() {
		require.NoError(t, e.Admin.CoreV1().Secrets("anew-src").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
		e.HasNone(namespace, "shared")
	}

	remove()
	e.HasEvent(namespace, "by-env", "RestartHeld")
	e.Secret("anew-src", "shared", map[string]string{"used": "1", "unused": "2"})
	e.Cloned("anew", "unused", "2")
	e.Restarted(namespace, before)

	remove()
	e.Secret("anew-src", "shared", map[string]string{"used": "2", "unused": "2"})
	e.Restarted(namespace, before, "Deployment/by-env")
}
