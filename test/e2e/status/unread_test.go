package status

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// unreadRules clone a Secret and a ConfigMap of one name to the same namespaces.
const unreadRules = `
- name: unread-secrets
  source: {kind: Secret, namespace: unread-src, name: shared}
  sync: {namespaces: {include: ["unread-*"]}}
- name: unread-configmaps
  source: {kind: ConfigMap, namespace: unread-src, name: shared}
  sync: {namespaces: {include: ["unread-*"]}}
`

// damaged makes an object of resource unreadable until again is called.
func (e *env) damaged(resource string) (again func()) {
	e.Helper()
	require.NoError(e, e.Cluster.Damage(e.Context(), resource, "default", "damaged"))
	undo := func(ctx context.Context) error { return e.Cluster.Undamage(ctx, resource, "default", "damaged") }
	e.Cleanup(func() { _ = undo(context.WithoutCancel(e.Context())) })
	return func() { require.NoError(e, undo(e.Context())) }
}

// unread are what the rules of unreadRules clone, by the resource.
func (e *env) unread(resource, namespace string) (value string, exists bool) {
	e.Helper()
	if resource == "secrets" {
		secret := e.Get(namespace, "shared")
		if secret == nil {
			return "", false
		}
		return string(secret.Data["k"]), true
	}
	found, err := e.Admin.CoreV1().ConfigMaps(namespace).Get(e.Context(), "shared", metav1.GetOptions{})
	require.NoError(e, lab.IgnoreGone(err))
	if err != nil {
		return "", false
	}
	return found.Data["k"], true
}

// hasUnread waits until the clone of resource in namespace has value.
func (e *env) hasUnread(resource, namespace, value string) {
	e.Helper()
	e.Eventually(func(context.Context) error {
		got, exists := e.unread(resource, namespace)
		return lab.ErrorIf(!exists || got != value, "%s in %s: exists %t, %q", resource, namespace, exists, got)
	})
}

func (e *env) editUnread(resource, value string) {
	e.Helper()
	require.NoError(e, e.tryEditUnread(e.Context(), resource, value))
}

// tryEditUnread gives the source of resource that value.
func (e *env) tryEditUnread(ctx context.Context, resource, value string) error {
	patch := map[string]any{"data": map[string]any{"k": value}}
	if resource == "secrets" {
		patch = map[string]any{"stringData": map[string]any{"k": value}}
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return e.Admin.CoreV1().RESTClient().Patch(types.MergePatchType).Namespace("unread-src").Resource(resource).Name("shared").Body(text).Do(ctx).Error()
}

func TestWhatCannotBeReadIsToldAndNothingIsWrittenForIt(t *testing.T) {
	secrets, configMaps := "secrets", "configmaps"
	for what, test := range map[string]struct {
		lose func(*env, *cluster.Proxy) (again func())
		// lost are the resources whose rule is not written for.
		lost []string
	}{
		"a Secret is damaged":    {func(e *env, _ *cluster.Proxy) func() { return e.damaged(secrets) }, []string{secrets}},
		"a ConfigMap is damaged": {func(e *env, _ *cluster.Proxy) func() { return e.damaged(configMaps) }, []string{configMaps}},
		"the right to Secrets is lost": {func(e *env, proxy *cluster.Proxy) func() {
			return e.unseeingAtOnce(proxy, secrets)
		}, []string{secrets}},
		"the right to namespaces is lost": {func(e *env, proxy *cluster.Proxy) func() {
			return e.unseeingAtOnce(proxy, "namespaces")
		}, []string{secrets, configMaps}},
	} {
		t.Run(what, func(t *testing.T) {
			e := newEnv(t)
			e.Namespaces("unread-src", "unread-a")
			e.Secret("unread-src", "shared", map[string]string{"k": "one"})
			e.Create("unread-src", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shared"}, Data: map[string]string{"k": "one"}})
			o := e.Options(unreadRules)
			proxy := e.Proxy(o)
			h := e.Launch(o)
			require.NoError(t, h.Ready(t.Context()))
			all := []string{secrets, configMaps}
			for _, resource := range all {
				e.hasUnread(resource, "unread-a", "one")
				e.becomes("unread-"+resource, ready("Ready"))
			}

			began := time.Now().Add(-time.Second) // the time in a status is in whole seconds
			again := test.lose(e, proxy)
			isLost := map[string]bool{}
			for _, resource := range test.lost {
				isLost[resource] = true
				status := e.becomes("unread-"+resource, ready(rulestatus.CannotRead)).Status
				require.Equal(t, metav1.ConditionUnknown, status.Condition(rulestatus.Ready).Status)
				e.saysSince(status.Condition(rulestatus.SourceFound).Message, began)
			}
			e.HasNote(lab.Namespace, "headwater", rulestatus.CannotRead, "Headwater cannot read ")
			e.HasMetric(h, 1, "headwater_unwatched", nil)

			mark := e.Cluster.Mark()
			for _, resource := range all {
				e.editUnread(resource, "two")
			}
			e.Namespace("unread-b")
			for _, resource := range all {
				if !isLost[resource] {
					e.hasUnread(resource, "unread-b", "two")
					e.becomes("unread-"+resource, ready("Ready"))
				}
			}
			e.Holds(lab.Settle, func(context.Context) error {
				for resource := range isLost {
					got, exists := e.unread(resource, "unread-b")
					if exists {
						return lab.ErrorIf(true, "%s were cloned: %s", resource, got)
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
			e.HasNote(lab.Namespace, "headwater", "ReadsAgain", "everything")
			e.HasMetric(h, 0, "headwater_unwatched", nil)
			for _, write := range e.Writes(mark) {
				if write.Namespace == "unread-b" {
					require.Equal(t, "create", write.Verb, "no clone began with what was read before: %+v", write)
				}
			}
		})
	}
}

// unseeingAtOnce is unseeing for watches that are open, too.
func (e *env) unseeingAtOnce(proxy *cluster.Proxy, resource string) (again func()) {
	e.Helper()
	again = e.unseeing("pods", resource)
	proxy.Cut() // open watches outlive a permission
	require.NoError(e, proxy.Restore())
	return again
}

// saysSince checks that a message names a time between began and now, and why.
func (e *env) saysSince(message string, began time.Time) {
	e.Helper()
	require.Regexp(e, `^Headwater cannot read (secrets|configmaps|namespaces) since \S+Z \([^)]+\): .+; no clone of the rule is written or deleted meanwhile`, message)
	var at time.Time
	for _, word := range strings.Fields(message) {
		if parsed, err := time.Parse(time.RFC3339, word); err == nil {
			at = parsed
		}
	}
	require.True(e, !at.Before(began.Truncate(time.Second)) && !at.After(time.Now()), message)
}
