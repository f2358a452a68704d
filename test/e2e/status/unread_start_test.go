package status

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/test/lab"
)

// Invariant 5: what a cache lacks that was never filled may be there.
func TestWhatCannotBeReadAtTheStartHoldsItsRulesAlone(t *testing.T) {
	const (
		secrets, configMaps = "secrets", "configmaps"
		byWebhook           = "protect: {engine: Webhook}\n"
	)
	for what, test := range map[string]struct {
		lose     func(*env) (again func())
		sections string
		// lost are the resources whose rule waits.
		lost []string
	}{
		"a Secret is damaged, behind policies":    {func(e *env) func() { return e.damaged(secrets) }, "", []string{secrets}},
		"a Secret is damaged, behind the webhook": {func(e *env) func() { return e.damaged(secrets) }, byWebhook, []string{secrets}},
		"the right to Secrets is lost":            {func(e *env) func() { return e.unseeing("pods", secrets) }, byWebhook, []string{secrets}},
		"the right to ConfigMaps is lost":         {func(e *env) func() { return e.unseeing("pods", configMaps) }, "", []string{configMaps}},
		"the right to namespaces is lost":         {func(e *env) func() { return e.unseeing("pods", "namespaces") }, byWebhook, []string{secrets, configMaps}},
	} {
		t.Run(what, func(t *testing.T) {
			e := newEnv(t)
			e.Sections = test.sections
			e.Namespaces("unread-src", "unread-a")
			e.Secret("unread-src", "shared", map[string]string{"k": "one"})
			e.Create("unread-src", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shared"}, Data: map[string]string{"k": "one"}})
			first := e.Launch(e.Options(protectedUnread))
			require.NoError(t, first.Ready(t.Context()))
			all := []string{secrets, configMaps}
			for _, resource := range all {
				e.hasUnread(resource, "unread-a", "one")
				e.becomes("unread-"+resource, ready("Ready"))
			}
			first.Stop()

			again := test.lose(e)
			e.Namespace("unread-b")
			mark, began := e.Cluster.Mark(), time.Now().Add(-time.Second) // the time in a status is in whole seconds
			h := e.Launch(e.Options(protectedUnread))
			require.NoError(t, h.Ready(t.Context()), "for what works")
			isLost := map[string]bool{}
			for _, resource := range test.lost {
				isLost[resource] = true
				status := e.becomes("unread-"+resource, ready(rulestatus.CannotRead)).Status
				e.saysSince(status.Condition(rulestatus.SourceFound).Message, began)
				require.Equal(t, 1, status.Clones.Current, "as it was known last")
			}
			e.HasMetric(h, 1, "headwater_unwatched", nil)
			for _, resource := range all {
				e.Eventually(func(ctx context.Context) error { return e.tryEditUnread(ctx, resource, "two") })
			}
			for _, resource := range all {
				if !isLost[resource] {
					e.hasUnread(resource, "unread-b", "two")
					e.hasUnread(resource, "unread-a", "two")
					e.becomes("unread-"+resource, ready("Ready"))
				}
			}
			e.Holds(lab.Settle, func(context.Context) error {
				for resource := range isLost {
					value, _ := e.unread(resource, "unread-a")
					_, exists := e.unread(resource, "unread-b")
					if exists || value != "one" {
						return lab.ErrorIf(true, "%s were cloned: %s", resource, value)
					}
				}
				return nil
			})

			again()
			for resource := range isLost {
				e.hasUnread(resource, "unread-b", "two")
				e.hasUnread(resource, "unread-a", "two")
				e.becomes("unread-"+resource, ready("Ready"))
			}
			e.HasMetric(h, 0, "headwater_unwatched", nil)
			for _, write := range e.Writes(mark) {
				require.NotEqual(t, "delete", write.Verb, "what was not read was not gone: %+v", write)
			}
		})
	}
}

// protectedUnread are unreadRules with protected sources.
const protectedUnread = `
- name: unread-secrets
  source: {kind: Secret, namespace: unread-src, name: shared}
  sync: {namespaces: {include: ["unread-*"]}}
  protect: {}
- name: unread-configmaps
  source: {kind: ConfigMap, namespace: unread-src, name: shared}
  sync: {namespaces: {include: ["unread-*"]}}
  protect: {}
`

// Clones need no consumers: not at the start either.
func TestClonesDoNotWaitForConsumersThatCannotBeRead(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("unread-src", "unread-a")
	e.Secret("unread-src", "shared", map[string]string{"k": "one"})
	again := e.unseeing("pods", "deployments")
	h := e.Launch(e.Options(lab.Rule("unread", `sync: {namespaces: {include: ["unread-*"]}}`, "reload: {}")))
	e.HasClone("unread-a", "shared", map[string]string{"k": "one"})
	status := e.becomes("unread", ready(rulestatus.CannotRead)).Status
	require.Equal(t, metav1.ConditionTrue, status.Condition(rulestatus.Synced).Status)
	require.Equal(t, metav1.ConditionUnknown, status.Condition(rulestatus.Reloaded).Status)
	require.NoError(t, h.Ready(t.Context()), "for what works")

	again()
	e.becomes("unread", ready("Ready"))
}
