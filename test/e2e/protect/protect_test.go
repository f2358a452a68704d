package protect

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/lab"
)

const (
	webhookConfiguration = "headwater"
	certificateSecret    = "headwater-webhook-tls"
)

// sourceWithEditor makes the Secret shared in namespace PREFIX-src, and returns a
// client of user, who may do anything to Secrets as far as RBAC goes.
func (e *env) sourceWithEditor(prefix, user string) kubernetes.Interface {
	e.Helper()
	e.Namespace(prefix + "-src")
	e.Secret(prefix+"-src", "shared", map[string]string{"k": "v"})
	e.ClusterRole(prefix+"-editor", lab.SecretsEditor())
	e.Grant("", prefix+"-editor", user)
	return e.Client(user)
}

// protected waits until the webhook is registered and refuses user.
func (e *env) protected(user kubernetes.Interface, namespace, name string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		return lab.Refused(lab.TryEdit(ctx, user, namespace, name, "probe"))
	})
}

// protectedByWebhook waits until the webhook alone refuses user.
func (e *env) protectedByWebhook(user kubernetes.Interface, namespace, name string) {
	e.Helper()
	e.protected(user, namespace, name)
	e.webhookAlone()
	e.Eventually(func(ctx context.Context) error {
		err := lab.TryEdit(ctx, user, namespace, name, "probe")
		return lab.ErrorIf(err == nil || !strings.Contains(err.Error(), byWebhook), "not refused by the webhook: %w", err)
	})
}

// protectedByPolicy waits until a policy refuses user, which goes on with no
// pod running.
func (e *env) protectedByPolicy(user kubernetes.Interface, namespace, name string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		err := lab.TryEdit(ctx, user, namespace, name, "probe")
		return lab.ErrorIf(err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'headwater-"), "not refused by a policy: %w", err)
	})
}

func TestNoWayRoundTheProtection(t *testing.T) {
	e := newEnv(t)
	mallory := e.sourceWithEditor("ways", "ways-mallory")
	secrets := mallory.CoreV1().Secrets("ways-src")
	e.Start(lab.Rule("ways", "protect: {}"))
	e.protected(mallory, "ways-src", "shared")
	ctx := t.Context()
	change := func(mutate func(*corev1.Secret)) func() error {
		return func() error {
			secret, err := secrets.Get(ctx, "shared", metav1.GetOptions{})
			require.NoError(t, err)
			mutate(secret)
			_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
			return err
		}
	}
	patch := func(kind types.PatchType, body string) func() error {
		return func() error {
			_, err := secrets.Patch(ctx, "shared", kind, []byte(body), metav1.PatchOptions{})
			return err
		}
	}
	remove := func(options metav1.DeleteOptions) func() error {
		return func() error { return secrets.Delete(ctx, "shared", options) }
	}
	orphan, foreground := metav1.DeletePropagationOrphan, metav1.DeletePropagationForeground
	var now int64
	for sentence, attempt := range map[string]func() error{
		"update of a value":         change(func(s *corev1.Secret) { s.Data["k"] = []byte("x") }),
		"update that adds a key":    change(func(s *corev1.Secret) { s.Data["more"] = nil }),
		"update to immutable":       change(func(s *corev1.Secret) { yes := true; s.Immutable = &yes }),
		"update of our annotations": change(func(s *corev1.Secret) { s.Annotations = map[string]string{"headwater.dev/rule": "x"} }),
		"update that adds a finalizer": change(func(s *corev1.Secret) {
			s.Finalizers = append(s.Finalizers, "example.org/pin")
		}),
		"update that adds an owner": change(func(s *corev1.Secret) {
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}}
		}),
		"JSON patch":            patch(types.JSONPatchType, `[{"op":"replace","path":"/data/k","value":"eA=="}]`),
		"merge patch":           patch(types.MergePatchType, `{"data":{"k":"eA=="}}`),
		"strategic merge patch": patch(types.StrategicMergePatchType, `{"stringData":{"k":"x"}}`),
		"server-side apply": func() error {
			apply := applycorev1.Secret("shared", "ways-src").WithStringData(map[string]string{"k": "x"})
			_, err := secrets.Apply(ctx, apply, metav1.ApplyOptions{FieldManager: "mallory", Force: true})
			return err
		},
		"delete":                             remove(metav1.DeleteOptions{}),
		"delete, as a dry run":               remove(metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}),
		"delete with force":                  remove(metav1.DeleteOptions{GracePeriodSeconds: &now}),
		"delete with orphan propagation":     remove(metav1.DeleteOptions{PropagationPolicy: &orphan}),
		"delete with foreground propagation": remove(metav1.DeleteOptions{PropagationPolicy: &foreground}),
		"delete of the whole collection": func() error {
			return secrets.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			require.NoError(t, lab.Refused(attempt()))
		})
	}
	require.NoError(t, lab.SameData(e.Get("ways-src", "shared"), map[string]string{"k": "v"}))
	t.Run("a rewrite without a change passes, as storage migration needs", func(t *testing.T) {
		require.NoError(t, change(func(*corev1.Secret) {})())
	})
	t.Run("a label that is not ours passes", func(t *testing.T) {
		require.NoError(t, patch(types.MergePatchType, `{"metadata":{"labels":{"team":"x"}}}`)())
	})
	t.Run("another Secret of the namespace is nobody's business", func(t *testing.T) {
		_, err := secrets.Create(ctx, lab.Secret("ways-src", "other", map[string]string{"k": "v"}), metav1.CreateOptions{})
		require.NoError(t, err)
		require.NoError(t, lab.TryEdit(ctx, mallory, "ways-src", "other", "x"))
		require.NoError(t, secrets.Delete(ctx, "other", metav1.DeleteOptions{}))
	})
}

func TestWhoMayEdit(t *testing.T) {
	e := newEnv(t)
	e.Secret(e.Namespace("who-src"), "shared", map[string]string{"k": "v"})
	e.ClusterRole("who-editor", lab.SecretsEditor())
	e.ClusterRole("who-exempt", lab.SecretsEditor())
	users := []string{"who-nobody", "who-user", "who-ingroup", "who-bound", "who-locally", "who-override", "system:serviceaccount:who-src:robot"}
	for _, user := range users {
		e.Grant("", "who-editor", user)
	}
	e.Grant("", "who-exempt", "who-bound")
	e.Grant("who-src", "who-exempt", "who-locally")
	e.ClusterRole("who-override-role", rbacv1.PolicyRule{
		APIGroups: []string{"headwater.dev"}, Resources: []string{"protectedobjects"}, ResourceNames: []string{"who"}, Verbs: []string{"override"},
	})
	e.Grant("", "who-override-role", "who-override")
	e.Start(`
- name: who
  source: {kind: Secret, namespace: who-src, name: shared}
  protect:
    allow:
      clusterRoles: [who-exempt]
      users: [who-user]
      groups: [who-group]
      serviceAccounts: [{namespace: who-src, name: robot}]
`)
	e.protected(e.Client("who-nobody"), "who-src", "shared")
	for sentence, test := range map[string]struct {
		client kubernetes.Interface
		may    bool
	}{
		"somebody who may edit Secrets may not":                        {e.Client("who-nobody"), false},
		"a user who is named may":                                      {e.Client("who-user"), true},
		"a member of a group that is named may":                        {e.Client("who-ingroup", "who-group"), true},
		"a service account that is named may":                          {e.Client("system:serviceaccount:who-src:robot"), true},
		"the holder of a ClusterRole through a ClusterRoleBinding may": {e.Client("who-bound"), true},
		"its holder through a RoleBinding there may not":               {e.Client("who-locally"), false},
		"the holder of the override verb may":                          {e.Client("who-override"), true},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := lab.TryEdit(t.Context(), test.client, "who-src", "shared", "x")
			if test.may {
				require.NoError(t, err)
			} else {
				require.NoError(t, lab.Refused(err))
			}
		})
	}
	t.Run("a binding made later counts, and one taken away does not", func(t *testing.T) {
		nobody := e.Client("who-nobody")
		e.Grant("", "who-exempt", "who-nobody")
		require.NoError(t, lab.Eventually(t.Context(), func(ctx context.Context) error {
			return lab.TryEdit(ctx, nobody, "who-src", "shared", "x")
		}))
		require.NoError(t, e.Admin.RbacV1().ClusterRoleBindings().Delete(t.Context(), "who-nobody-who-exempt", metav1.DeleteOptions{}))
		require.NoError(t, lab.Eventually(t.Context(), func(ctx context.Context) error {
			return lab.Refused(lab.TryEdit(ctx, nobody, "who-src", "shared", "x"))
		}))
	})
}

// Invariant 9: an outage of Headwater can only ever block writes to protected objects, and
// break-glass works with no pod running.
func TestAnOutageBlocksProtectedObjectsOnly(t *testing.T) {
	e := newEnv(t)
	e.StageOf("outage", map[string]string{"k": "v"})
	for _, user := range []string{"outage-jane", "outage-keeper", "outage-breaker", "outage-other"} {
		require.NoError(t, lab.Grant(t.Context(), e.Admin, "outage-editor-"+user, user))
	}
	for user, rule := range map[string]string{"outage-breaker": "outage", "outage-other": "other"} {
		e.ClusterRole(user, override("override", "headwater.dev", "protectedobjects", rule))
		e.Grant("", user, user)
	}
	jane, keeper := e.Client("outage-jane"), e.Client("outage-keeper")
	for _, engine := range []string{"Webhook", "Policy", "Both"} {
		t.Run("with engine "+engine, func(t *testing.T) {
			e := &env{e.Of(t)}
			e.Sections = fmt.Sprintf("protect: {engine: %s}\n", engine)
			h := e.Start(lab.Rule("outage", "sync: {namespaces: {include: [outage-a]}}", "protect: {allow: {users: [outage-keeper]}}"))
			e.HasClone("outage-a", "shared", map[string]string{"k": "v"})
			if engine == "Webhook" {
				e.protected(jane, "outage-src", "shared")
			} else {
				e.protectedByPolicy(jane, "outage-src", "shared")
			}
			e.registeredFor(engine)
			h.Stop() // at once, as far as the API server can tell
			ctx := t.Context()
			require.Error(t, lab.TryEdit(ctx, jane, "outage-src", "shared", "x"), "the source stays protected")
			if engine == "Webhook" {
				require.Error(t, lab.TryEdit(ctx, keeper, "outage-src", "shared", "x"), "nobody can tell who may")
			} else {
				require.NoError(t, lab.TryEdit(ctx, keeper, "outage-src", "shared", "x"), "a user that the rule allows")
			}
			_, err := jane.CoreV1().Secrets("outage-src").Create(ctx, lab.Secret("outage-src", "other", nil), metav1.CreateOptions{})
			require.NoError(t, err, "creating in the source namespace")
			require.NoError(t, lab.TryEdit(ctx, jane, "outage-src", "other", "x"), "editing beside the source")
			require.NoError(t, jane.CoreV1().Secrets("outage-src").Delete(ctx, "other", metav1.DeleteOptions{}), "deleting beside the source")
			require.NoError(t, lab.TryEdit(ctx, jane, "outage-a", "shared", "x"), "editing a clone")
			require.NoError(t, lab.TryEdit(ctx, e.Admin, "outage-src", "shared", "x"), "break-glass")
			require.NoError(t, lab.TryEdit(ctx, e.Client("outage-breaker"), "outage-src", "shared", "x"), "break-glass, by the verb override on the rule")
			require.Error(t, lab.TryEdit(ctx, e.Client("outage-other"), "outage-src", "shared", "x"), "the verb override on another rule")
		})
	}
	require.NoError(t, e.Admin.CoreV1().Namespaces().Delete(t.Context(), "outage-a", metav1.DeleteOptions{}))
}

func TestTheRegistrationIsKept(t *testing.T) {
	e := newEnv(t)
	mallory := e.sourceWithEditor("keep", "keep-mallory")
	e.Sections = "protect: {engine: Webhook}\n"
	h := e.Start(lab.Rule("keep", "protect: {}"))
	webhooks := e.Admin.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	e.protectedByWebhook(mallory, "keep-src", "shared")
	for i, tampering := range []struct {
		sentence, told string
		do             func(context.Context) error
	}{
		{"deleted", "was deleted", func(ctx context.Context) error {
			return webhooks.Delete(ctx, webhookConfiguration, metav1.DeleteOptions{})
		}},
		{"told to ignore failures", `was changed by field manager "vandal"`, func(ctx context.Context) error {
			_, err := webhooks.Patch(ctx, webhookConfiguration, types.JSONPatchType,
				[]byte(`[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}]`), metav1.PatchOptions{FieldManager: "vandal"})
			return err
		}},
		{"emptied", `was changed by field manager "vandal"`, func(ctx context.Context) error {
			_, err := webhooks.Patch(ctx, webhookConfiguration, types.MergePatchType, []byte(`{"webhooks":[]}`),
				metav1.PatchOptions{FieldManager: "vandal"})
			return err
		}},
	} {
		t.Run(tampering.sentence, func(t *testing.T) {
			require.NoError(t, tampering.do(t.Context()))
			e.HasMetric(h, float64(i+1), "headwater_protection_tampered_total", map[string]string{"kind": "ValidatingWebhookConfiguration"})
			e.webhookAlone()
			e.protected(mallory, "keep-src", "shared")
			e.HasNote("default", webhookConfiguration, "Tampered", tampering.told)
		})
	}
	t.Run("a deleted certificate is recreated, and served without a restart", func(t *testing.T) {
		before := e.Get(lab.Namespace, certificateSecret)
		require.NoError(t, e.Admin.CoreV1().Secrets(lab.Namespace).Delete(t.Context(), certificateSecret, metav1.DeleteOptions{}))
		require.NoError(t, lab.Eventually(t.Context(), func(ctx context.Context) error {
			after := e.Get(lab.Namespace, certificateSecret)
			if after == nil || after.UID == before.UID {
				return fmt.Errorf("the Secret is not back")
			}
			if err := serves(ctx, e.Webhook, after.Data[corev1.TLSCertKey]); err != nil {
				return err
			}
			return lab.Refused(lab.TryEdit(ctx, mallory, "keep-src", "shared", "x"))
		}))
	})
	t.Run("the last rule gone, it is gone", func(t *testing.T) {
		e.ConfigFile(" []\n")
		require.NoError(t, lab.Eventually(t.Context(), func(ctx context.Context) error {
			_, err := webhooks.Get(ctx, webhookConfiguration, metav1.GetOptions{})
			return lab.ErrorIf(!apierrors.IsNotFound(err), "still there: %w", err)
		}))
		e.Eventually(func(ctx context.Context) error { return lab.TryEdit(ctx, mallory, "keep-src", "shared", "x") })
	})
}

// failsOpen waits until what the webhook does not answer is left to the
// policies.
func (e *env) failsOpen() {
	e.Helper()
	lab.Until(e, e.Admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get, webhookConfiguration, func(live *admissionregistrationv1.ValidatingWebhookConfiguration) error {
		return lab.ErrorIf(*live.Webhooks[0].FailurePolicy != "Ignore", "it fails closed")
	})
	e.heard()
}

// unregistered waits until there is no webhook.
func (e *env) unregistered() {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		_, err := e.Admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, webhookConfiguration, metav1.GetOptions{})
		if err == nil {
			return fmt.Errorf("there is one")
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	})
	e.heard()
}

// webhookAlone waits until the webhook denies with no help: what it does not answer is
// refused, and the policies, which the API server asks first, are gone. They come with the
// webhook, and stay until it was seen to deny.
func (e *env) webhookAlone() {
	e.Helper()
	lab.Until(e, e.Admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get, webhookConfiguration, func(live *admissionregistrationv1.ValidatingWebhookConfiguration) error {
		return lab.ErrorIf(len(live.Webhooks) == 0 || *live.Webhooks[0].FailurePolicy != "Fail", "it fails open")
	})
	e.heard()
	bindings := e.Admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	e.Eventually(func(ctx context.Context) error {
		_, err := bindings.Get(ctx, "headwater-sources", metav1.GetOptions{})
		return lab.Gone(err)
	})
}

// registeredFor waits until the API server asks the webhook as the engine wants it.
func (e *env) registeredFor(engine string) {
	e.Helper()
	switch engine {
	case "Webhook":
		e.webhookAlone()
	case "Policy":
		e.unregistered()
	default:
		e.failsOpen()
	}
}

// heard waits until the API server has heard of all webhooks that are registered now, by one more
// that refuses one object: it hears of them in order.
func (e *env) heard() {
	e.Helper()
	name, nowhere := "heard-"+strings.ToLower(rand.Text()), "https://127.0.0.1:1"
	fail, none := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	webhooks := e.Admin.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err := webhooks.Create(e.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "heard.example.org", FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &nowhere},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "only", Expression: fmt.Sprintf("object.metadata.name == %q", name)}},
		}},
	}, metav1.CreateOptions{})
	require.NoError(e, err)
	e.Eventually(func(ctx context.Context) error {
		_, err := e.Admin.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{DryRun: dry()})
		return lab.ErrorIf(!apierrors.IsInternalError(err), "the API server has not heard of it: %v", err)
	})
	require.NoError(e, webhooks.Delete(e.Context(), name, metav1.DeleteOptions{}))
}

// serves checks that the certificate presented at address is the first of
// certificates, in PEM.
func serves(ctx context.Context, address string, certificates []byte) error {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // what is presented is compared below
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	block, _ := pem.Decode(certificates)
	presented := conn.(*tls.Conn).ConnectionState().PeerCertificates
	return lab.ErrorIf(block == nil || len(presented) == 0 || !bytes.Equal(block.Bytes, presented[0].Raw), "another certificate is served than the Secret holds")
}

func TestTheSourceNamespaceIsGuarded(t *testing.T) {
	e := newEnv(t)
	require.NoError(t, lab.EnsureNamespace(t.Context(), e.Admin, "guard-src", nil))
	e.Secret("guard-src", "shared", map[string]string{"k": "v"})
	e.ClusterRole("guard-exempt", lab.SecretsEditor(), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"*"}})
	e.ClusterRole("guard-editor", lab.SecretsEditor(), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"*"}})
	e.Grant("", "guard-editor", "guard-mallory")
	e.Grant("", "guard-exempt", "guard-owner")
	mallory, owner := e.Client("guard-mallory"), e.Client("guard-owner")
	e.Start(lab.Rule("guard", "protect: {allow: {clusterRoles: [guard-exempt]}}"))
	e.Eventually(func(ctx context.Context) error { // namespaces have a policy of their own
		return lab.Refused(mallory.CoreV1().Namespaces().Delete(ctx, "guard-src", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}))
	})
	e.protected(mallory, "guard-src", "shared")
	require.NoError(t, lab.Refused(mallory.CoreV1().Namespaces().Delete(t.Context(), "guard-src", metav1.DeleteOptions{})))
	require.NoError(t, owner.CoreV1().Namespaces().Delete(t.Context(), "guard-src", metav1.DeleteOptions{}))
	e.Eventually(func(ctx context.Context) error { // the namespace controller may empty it
		_, err := e.Admin.CoreV1().Namespaces().Get(ctx, "guard-src", metav1.GetOptions{})
		return lab.ErrorIf(!apierrors.IsNotFound(err), "the namespace is still there: %w", err)
	})
}
