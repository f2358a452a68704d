package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/harness"
)

// withoutKey takes a key of the source of reloadRule away.
func (e *env) withoutKey(prefix, key string) {
	e.Helper()
	e.edit(prefix+"-src", "shared", func(s *corev1.Secret) { delete(s.Data, key) })
}

func TestARequiredKeyThatIsMissingHoldsTheRestart(t *testing.T) {
	e := newEnv(t)
	namespace := e.stage("nokey")
	optional := harness.ByEnv("shared", "used")
	optional.Containers[0].Env[0].ValueFrom.SecretKeyRef.Optional = new(true)
	e.deployment(namespace, "by-env", harness.ByEnv("shared", "used"), nil)
	e.deployment(namespace, "by-optional", optional, nil)
	h := e.start(reloadRule("nokey"))
	e.cloned("nokey", "used", "1")
	e.settled(h)
	before := e.stamps(namespace)

	e.withoutKey("nokey", "used")
	require.Contains(t, e.hasEvent(namespace, "by-env", "RestartHeld"), "key used of Secret/nokey-a/shared")
	e.restarted(namespace, before, "Deployment/by-optional")
	e.settled(h)

	without := e.stamps(namespace)
	e.change("nokey", "used", "1")
	e.cloned("nokey", "used", "1")
	e.restarted(namespace, without, "Deployment/by-optional") // to the other, it is as it was

	before = e.stamps(namespace)
	e.withoutKey("nokey", "used")
	e.restarted(namespace, before, "Deployment/by-optional")
	h.Stop() // what is held is not forgotten
	e.change("nokey", "used", "2")
	e.start(reloadRule("nokey"))
	e.restarted(namespace, before, "Deployment/by-env", "Deployment/by-optional")
}

func TestARequiredObjectThatIsMissingHoldsTheRestart(t *testing.T) {
	e := newEnv(t)
	namespace := e.stage("noobject")
	e.secret(namespace, "own", map[string]string{"k": "1"})
	both := harness.ByEnv("shared", "used")
	both.Containers[0].EnvFrom = harness.ByEnvFrom("own").Containers[0].EnvFrom
	e.deployment(namespace, "by-both", both, nil)
	e.deployment(namespace, "by-env", harness.ByEnv("shared", "used"), nil)
	h := e.start(reloadRule("noobject"))
	e.cloned("noobject", "used", "1")
	e.settled(h)
	before := e.stamps(namespace)

	require.NoError(t, e.admin.CoreV1().Secrets(namespace).Delete(t.Context(), "own", metav1.DeleteOptions{}))
	e.change("noobject", "used", "2")
	require.Contains(t, e.hasEvent(namespace, "by-both", "RestartHeld"), "Secret/noobject-a/own")
	e.restarted(namespace, before, "Deployment/by-env")

	e.secret(namespace, "own", map[string]string{"k": "1"})
	e.restarted(namespace, before, "Deployment/by-both", "Deployment/by-env")
}

func TestASourceMadeAnewWithTheSameDataRestartsNothing(t *testing.T) {
	e := newEnv(t)
	namespace := e.stage("anew")
	rule := strings.ReplaceAll(reloadRule("anew"), "sync: {", "sync: {onSourceDeleted: Delete, ")
	e.deployment(namespace, "by-env", harness.ByEnv("shared", "used"), nil)
	h := e.start(rule)
	e.cloned("anew", "used", "1")
	e.settled(h)
	before := e.stamps(namespace)
	remove := func() {
		require.NoError(t, e.admin.CoreV1().Secrets("anew-src").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
		e.hasNone(namespace, "shared")
	}

	remove()
	e.hasEvent(namespace, "by-env", "RestartHeld")
	e.secret("anew-src", "shared", map[string]string{"used": "1", "unused": "2"})
	e.cloned("anew", "unused", "2")
	e.restarted(namespace, before)

	remove()
	e.secret("anew-src", "shared", map[string]string{"used": "2", "unused": "2"})
	e.restarted(namespace, before, "Deployment/by-env")
}
