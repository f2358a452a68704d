package protect

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/lab"
)

func TestNobodyGetsInBetweenTwoEngines(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("switch-src", "switch-a")
	for _, name := range []string{"shared", "other"} {
		e.Secret("switch-src", name, map[string]string{"k": "v"})
	}
	e.ClusterRole("switch-editor", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets", "namespaces"}, Verbs: []string{"*"}})
	for _, user := range []string{"switch-mallory", "switch-owner"} {
		e.Grant("", "switch-editor", user)
	}
	mallory, owner := e.Client("switch-mallory"), e.Client("switch-owner")
	rules := lab.Rule("switch", "sync: {namespaces: {include: [switch-a]}}", "protect: {clones: Deny, allow: {users: [switch-owner]}}")
	h := e.Start(rules)
	e.HasClone("switch-a", "shared", map[string]string{"k": "v"})
	e.proven(h, "switch")
	load := e.newTraffic("switch-src", "shared", "other", owner, mallory)
	load.also(t.Context(), "refused write to a clone", func(ctx context.Context, n int) error {
		return lab.Refused(lab.TryEdit(ctx, mallory, "switch-a", "shared", strconv.Itoa(n)))
	})
	for _, engine := range []string{"Webhook", "Policy", "Webhook", "Both", "Policy", "Both"} {
		e.Sections = fmt.Sprintf("protect: {engine: %s}\n", engine)
		e.ConfigFile(rules)
		switch engine {
		case "Webhook":
			e.alone(mallory, byWebhook, "switch-src", "switch-a")
		case "Policy":
			e.alone(mallory, byPolicy, "switch-src", "switch-a")
			e.unregistered()
		default:
			e.alone(mallory, byPolicy, "switch-src", "switch-a")
			e.failsOpen()
		}
	}
	load.ends(e)
}

// How the API server says what refused.
const (
	byWebhook = `admission webhook "`
	byPolicy  = "ValidatingAdmissionPolicy '"
)

// alone waits until the API server has let go of the engine before: one attempt
// for each policy.
func (e *env) alone(nobody kubernetes.Interface, by, source, target string) {
	e.Helper()
	for _, do := range []func(context.Context, kubernetes.Interface) error{
		toSecret(source, patching("shared", `{"data":{"k":"eA=="}}`)),
		toSecret(target, creating(forged(target, "forged"))),
		deletingNamespace(source),
	} {
		e.Eventually(func(ctx context.Context) error {
			if err := do(ctx, nobody); err == nil || !strings.Contains(err.Error(), by) {
				return fmt.Errorf("not refused by %s: %w", by, err)
			}
			return nil
		})
	}
}
