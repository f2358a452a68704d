package protect

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/test/lab"
)

func TestAnEditThatFailsTheChecksIsDenied(t *testing.T) {
	e := newEnv(t)
	e.ClusterRole("content-editor", lab.SecretsEditor())
	for _, user := range []string{"content-alice", "content-breaker"} {
		e.Grant("", "content-editor", user)
	}
	e.ClusterRole("content-override", rbacv1.PolicyRule{APIGroups: []string{"headwater.dev"}, Resources: []string{"protectedobjects"}, Verbs: []string{"override"}})
	e.Grant("", "content-override", "content-breaker")
	for _, engine := range []string{"Webhook", "Both"} {
		t.Run("with engine "+engine, func(t *testing.T) {
			e := &env{e.Of(t)}
			namespace := e.Namespace("content-" + strings.ToLower(engine))
			e.Secret(namespace, "dated", map[string]string{"cert": lab.Certificate(t, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))})
			for _, name := range []string{"covered", "free"} {
				e.Secret(namespace, name, map[string]string{"settings": "level: info #"})
			}
			e.Sections = "protect: {engine: " + engine + "}\n"
			e.ForgetConfiguration()
			h := e.Start(strings.ReplaceAll(`
- name: covered
  source: {kind: Secret, namespace: NAMESPACE, name: covered}
  validate: [{key: settings, is: YAML}]
  protect: {guardNamespace: false, allow: {users: [content-alice]}}
- name: free
  source: {kind: Secret, namespace: NAMESPACE, name: free}
  validate: [{key: settings, is: YAML}]
  protect: {guardNamespace: false, operations: [Delete]}
- name: dated
  source: {kind: Secret, namespace: NAMESPACE, name: dated}
  validate: [{key: cert, is: Certificate}]
  protect: {guardNamespace: false, allow: {users: [content-alice]}}
`, "NAMESPACE", namespace))
			e.proven(h, "covered", "free", "dated")
			patch := func(user, name, content string, dryRun ...string) error {
				_, err := e.Client(user).CoreV1().Secrets(namespace).Patch(t.Context(), name, types.MergePatchType, []byte(content), metav1.PatchOptions{DryRun: dryRun})
				return err
			}
			const broken, whole = `{"stringData":{"settings":"level: [ #"}}`, `{"stringData":{"settings":"level: debug #"}}`
			for _, name := range []string{"covered", "free"} {
				e.Eventually(func(context.Context) error { // policies may enforce before the webhook is registered
					return lab.ErrorIf(patch("content-alice", name, broken, metav1.DryRunAll) == nil, "%s may be broken", name)
				})
				err := patch("content-alice", name, broken)
				require.True(t, apierrors.IsForbidden(err), "%s: %v", name, err)
				require.ErrorContains(t, err, `headwater: Secret `+namespace+`/`+name+` would have content that fails the checks of rule "`+name+`": key "settings" is not valid YAML (near line 1)`)
				require.NoError(t, patch("content-alice", name, whole))
				require.NoError(t, patch("content-breaker", name, broken))
				require.NoError(t, patch("content-alice", name, `{"metadata":{"labels":{"a":"b"},"finalizers":[]}}`))
			}
			from := time.Now().Add(time.Hour).Truncate(time.Second)
			ahead := lab.Certificate(t, from, from.Add(time.Hour))
			err := patch("content-alice", "dated", fmt.Sprintf(`{"stringData":{"cert":%q}}`, ahead))
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			require.ErrorContains(t, err, from.UTC().Format(time.RFC3339))
			h.Stop()
		})
	}
}
