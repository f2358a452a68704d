package protect

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/lab"
)

const sharingRules = `
- name: sharing-0
  source: {kind: Secret, namespace: sharing-src, name: shared}
  protect: {}
- name: sharing-1
  source: {kind: Secret, namespace: sharing-src, selector: {matchLabels: {share: "yes"}}}
  protect: {}
- name: sharing-2
  source: {kind: Secret, namespace: sharing-src, selector: {matchExpressions: [{key: share, operator: Exists}]}}
  protect: {allow: {users: [sharing-both]}}
`

// sharers may do anything to Secrets and namespaces as far as RBAC goes.
func (e *env) sharers() map[string]kubernetes.Interface {
	e.Helper()
	e.ClusterRole("sharing-editor", lab.SecretsEditor(), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"*"}})
	override := func(user string, rules ...string) {
		e.ClusterRole(user+"-override", rbacv1.PolicyRule{
			APIGroups: []string{"headwater.dev"}, Resources: []string{"protectedobjects"}, ResourceNames: rules, Verbs: []string{"override"},
		})
		e.Grant("", user+"-override", user)
	}
	override("sharing-every")
	override("sharing-each", "sharing-0", "sharing-1", "sharing-2")
	override("sharing-some", "sharing-0", "sharing-1")
	override("sharing-both", "sharing-0", "sharing-1")
	clients := map[string]kubernetes.Interface{}
	for _, user := range []string{"sharing-every", "sharing-each", "sharing-some", "sharing-both", "sharing-nobody"} {
		e.Grant("", "sharing-editor", user)
		clients[user] = e.Client(user)
	}
	return clients
}

// Break-glass works if several rules protect the same object: a user needs the
// override permission for each of them.
func TestOverridesOfRulesThatShareASourceAndANamespace(t *testing.T) {
	e := newEnv(t)
	e.StageOf("sharing", map[string]string{"k": "v"})
	e.Edit("sharing-src", "shared", func(s *corev1.Secret) { s.Labels = map[string]string{"share": "yes"} })
	clients := e.sharers()
	for _, engine := range []string{"Webhook", "Policy", "Both"} {
		t.Run("with engine "+engine, func(t *testing.T) {
			e := &env{e.Of(t)}
			e.Sections = fmt.Sprintf("protect: {engine: %s}\n", engine)
			h := e.Start(sharingRules)
			e.proven(h, "sharing-0", "sharing-1", "sharing-2")
			may := map[string]bool{"sharing-every": true, "sharing-each": true, "sharing-both": true, "sharing-some": false, "sharing-nobody": false}
			by := byPolicy
			if engine == "Webhook" {
				by = byWebhook
			}
			e.registeredFor(engine)
			e.alone(clients["sharing-nobody"], by, "sharing-src", "sharing-a")
			e.passes(clients, may)
			h.Stop()
			may["sharing-both"] = engine != "Webhook" // without a pod, no webhook can tell which users a rule allows
			e.passes(clients, may)
		})
	}
}

// passes checks which users may write to the source and delete its namespace.
func (e *env) passes(clients map[string]kubernetes.Interface, may map[string]bool) {
	e.Helper()
	for user, allowed := range may {
		for sentence, do := range map[string]func(context.Context, kubernetes.Interface) error{
			"edits the source":      toSecret("sharing-src", patching("shared", `{"data":{"k":"eA=="}}`)),
			"deletes the source":    toSecret("sharing-src", attemptToDelete("shared")),
			"deletes the namespace": deletingNamespace("sharing-src"),
		} {
			err := do(e.Context(), clients[user])
			require.NotContains(e, fmt.Sprint(err), "cost", "%s %s", user, sentence)
			if allowed {
				require.NoError(e, err, "%s %s", user, sentence)
			} else {
				require.Error(e, err, "%s %s", user, sentence)
			}
		}
	}
}
