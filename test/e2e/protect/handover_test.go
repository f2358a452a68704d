package protect

import (
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/headwater-k8s/headwater/test/lab"
)

func TestAWebhookThatIsNotReachedTakesOverFromNoPolicy(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("over-src", "over-a")
	for _, name := range []string{"shared", "other"} {
		e.Secret("over-src", name, map[string]string{"k": "v"})
	}
	e.ClusterRole("over-editor", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets", "namespaces"}, Verbs: []string{"*"}})
	for _, user := range []string{"over-mallory", "over-owner"} {
		e.Grant("", "over-editor", user)
	}
	mallory, owner := e.Client("over-mallory"), e.Client("over-owner")
	rules := lab.Rule("over", "sync: {namespaces: {include: [over-a]}}", "protect: {clones: Deny, allow: {users: [over-owner]}}")
	h := e.Start(rules)
	e.HasClone("over-a", "shared", map[string]string{"k": "v"})
	e.proven(h, "over")
	e.failsOpen()
	h.Stop()

	load := e.newTraffic("over-src", "shared", "other", owner, mallory)
	e.Sections = byTheWebhookAlone
	unreached := e.Options(rules)
	unreached.Args = []string{"--webhook-url", "https://127.0.0.1:1"}
	h = e.Launch(unreached)
	require.NoError(t, h.Ready(t.Context()))
	e.HasEvent("default", webhookConfiguration, "WebhookSilent")
	e.alone(mallory, byPolicy, "over-src", "over-a")
	e.proven(h, "over")
	h.Stop()

	h = e.Start(rules)
	e.alone(mallory, byWebhook, "over-src", "over-a")
	load.ends(e)
	h.Kill()
	e.alone(mallory, "failed calling webhook", "over-src", "over-a")
	require.Error(t, lab.TryEdit(t.Context(), mallory, "over-src", "shared", "x"))
}
