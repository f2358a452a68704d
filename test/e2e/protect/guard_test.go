package protect

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/test/lab"
)

// repairedWithin is sooner than what guards is looked at without a cause.
const repairedWithin = 40 * time.Second

// repaired waits until h has put right that many objects of a kind, the last of them in time.
func (e *env) repaired(h *lab.Headwater, kind string, times int, delays *lab.Delays) {
	e.Helper()
	began := time.Now()
	e.HasMetric(h, float64(times), "headwater_protection_tampered_total", map[string]string{"kind": kind})
	took := time.Since(began)
	if late := delays.Longest(began, time.Now()); took >= repairedWithin && late > repairedWithin/10 {
		e.Inconclusive("put right after %s, but writes were seen as late as %s", took, late)
	}
	require.Less(e, took, repairedWithin)
}

func TestThePoliciesAreKept(t *testing.T) {
	e := newEnv(t)
	mallory := e.sourceWithEditor("policies", "policies-mallory")
	// One of somebody else's that is labelled as ours are, and that refuses nobody.
	e.Policy(metav1.ObjectMeta{Name: "policies-decoy", Labels: map[string]string{"app.kubernetes.io/managed-by": "headwater"}}, admissionregistrationv1.Update, "", "secrets", "true")
	e.Sections = "protect: {engine: Policy}\n"
	rules := `
- name: policies
  source: {kind: Secret, namespace: policies-src, name: shared}
  protect: {}
`
	h := e.Start(rules)
	e.proven(h, "policies")
	admission := e.Admin.AdmissionregistrationV1()
	kinds, delays := map[string]int{}, e.Delays()
	policy := lab.Read(t, admission.ValidatingAdmissionPolicies().Get, "headwater-sources")
	binding := lab.Read(t, admission.ValidatingAdmissionPolicyBindings().Get, "headwater-sources")
	for _, tampering := range []struct {
		sentence, kind string
		do             func(context.Context) error
	}{
		{"a policy deleted", "ValidatingAdmissionPolicy", func(ctx context.Context) error {
			return admission.ValidatingAdmissionPolicies().Delete(ctx, "headwater-sources", metav1.DeleteOptions{})
		}},
		{"a policy's validations blunted", "ValidatingAdmissionPolicy", func(ctx context.Context) error {
			_, err := admission.ValidatingAdmissionPolicies().Patch(ctx, "headwater-sources", types.JSONPatchType,
				[]byte(`[{"op":"replace","path":"/spec/validations/0/expression","value":"true"}]`), metav1.PatchOptions{})
			return err
		}},
		{"a policy's label taken off", "ValidatingAdmissionPolicy", func(ctx context.Context) error {
			_, err := admission.ValidatingAdmissionPolicies().Patch(ctx, "headwater-sources", types.MergePatchType,
				[]byte(`{"metadata":{"labels":null},"spec":{"failurePolicy":"Ignore"}}`), metav1.PatchOptions{})
			return err
		}},
		{"a binding deleted", "ValidatingAdmissionPolicyBinding", func(ctx context.Context) error {
			return admission.ValidatingAdmissionPolicyBindings().Delete(ctx, "headwater-sources", metav1.DeleteOptions{})
		}},
		{"a binding that only warns", "ValidatingAdmissionPolicyBinding", func(ctx context.Context) error {
			_, err := admission.ValidatingAdmissionPolicyBindings().Patch(ctx, "headwater-sources", types.MergePatchType,
				[]byte(`{"spec":{"validationActions":["Warn"]}}`), metav1.PatchOptions{})
			return err
		}},
	} {
		t.Run(tampering.sentence+" is put right", func(t *testing.T) {
			require.NoError(t, tampering.do(t.Context()))
			kinds[tampering.kind]++
			(&env{e.Of(t)}).repaired(h, tampering.kind, kinds[tampering.kind], delays)
			lab.Until(t, admission.ValidatingAdmissionPolicies().Get, policy.Name, func(now *admissionregistrationv1.ValidatingAdmissionPolicy) error {
				return lab.ErrorIf(!reflect.DeepEqual(now.Labels, policy.Labels) || !reflect.DeepEqual(now.Spec, policy.Spec), "not put right yet")
			})
			lab.Until(t, admission.ValidatingAdmissionPolicyBindings().Get, binding.Name, func(now *admissionregistrationv1.ValidatingAdmissionPolicyBinding) error {
				return lab.ErrorIf(!reflect.DeepEqual(now.Spec, binding.Spec), "not put right yet")
			})
			e.protectedByPolicy(mallory, "policies-src", "shared")
		})
	}
	e.HasNote("default", "headwater-sources", "Tampered", "was deleted")

	t.Run("invariant 2: a restart writes nothing", func(t *testing.T) {
		e.HasEvent("policies-src", "shared", "ProtectionProven") // which comes after the record
		e.SettledFor(h, lab.Settle)
		h.Stop()
		mark := e.Cluster.Mark()
		h = e.Start(rules)
		e.proven(h, "policies")
		e.Holds(lab.Settle, e.NoWrites(mark))
	})
	t.Run("with no rule left, they go", func(t *testing.T) {
		e.ConfigFile(" []\n")
		e.Eventually(func(ctx context.Context) error {
			policies, err := admission.ValidatingAdmissionPolicies().List(ctx, registered)
			return errors.Join(err, lab.ErrorIf((len(policies.Items) != 1 || policies.Items[0].Name != "policies-decoy"), "there are %d, and not somebody else's alone", len(policies.Items)))
		})
		e.Eventually(func(ctx context.Context) error { return lab.TryEdit(ctx, mallory, "policies-src", "shared", "x") })
	})
}

// registered are the policies that Headwater registers: the others are the chart's.
var registered = metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=headwater"}

func TestTamperingDuringARolloutIsPutRight(t *testing.T) {
	e := newEnv(t)
	e.sourceWithEditor("handover", "handover-mallory")
	rules := `
- name: handover
  source: {kind: Secret, namespace: handover-src, name: shared}
  protect: {}
`
	admission, vandal := e.Admin.AdmissionregistrationV1(), metav1.PatchOptions{FieldManager: "vandal"}
	delays := e.Delays()
	for _, tampering := range []struct {
		engine, sentence, kind, object, told string
		do                                   func(context.Context) error
	}{
		{"Policy", "a binding deleted", "ValidatingAdmissionPolicyBinding", "headwater-sources", "was deleted", func(ctx context.Context) error {
			return admission.ValidatingAdmissionPolicyBindings().Delete(ctx, "headwater-sources", metav1.DeleteOptions{})
		}},
		{"Policy", "a policy blunted", "ValidatingAdmissionPolicy", "headwater-sources", `by field manager "vandal"`, func(ctx context.Context) error {
			_, err := admission.ValidatingAdmissionPolicies().Patch(ctx, "headwater-sources", types.JSONPatchType,
				[]byte(`[{"op":"replace","path":"/spec/validations/0/expression","value":"true"}]`), vandal)
			return err
		}},
		{"Webhook", "the webhook taken", "ValidatingWebhookConfiguration", webhookConfiguration, "was deleted", func(ctx context.Context) error {
			return admission.ValidatingWebhookConfigurations().Delete(ctx, webhookConfiguration, metav1.DeleteOptions{})
		}},
		{"Webhook", "one of the webhooks taken", "ValidatingWebhookConfiguration", webhookConfiguration, "was changed", func(ctx context.Context) error {
			_, err := admission.ValidatingWebhookConfigurations().Patch(ctx, webhookConfiguration, types.JSONPatchType,
				[]byte(`[{"op":"remove","path":"/webhooks/0"}]`), vandal)
			return err
		}},
	} {
		t.Run(tampering.sentence+" with engine "+tampering.engine, func(t *testing.T) {
			e := &env{e.Of(t)}
			e.Sections = "protect: {engine: " + tampering.engine + "}\n"
			r := newReplicas(e, rules)
			old := r.launch()
			r.ready()
			e.proven(old, "handover")
			if tampering.engine == "Webhook" {
				e.webhookAlone()
			}
			fresh := r.launch()
			r.ready()
			r.stop(old)
			require.NoError(t, tampering.do(t.Context())) // whether or not the other one leads by now
			e.repaired(fresh, tampering.kind, 1, delays)
			e.HasNote("default", tampering.object, "Tampered", tampering.told)
			e.proven(fresh, "handover")
		})
	}
}

func TestTheWebhookConfigurationIsGuarded(t *testing.T) {
	e := newEnv(t)
	e.Secret(e.Namespace("self-src"), "shared", map[string]string{"k": "v"})
	e.ClusterRole("self-operator", rbacv1.PolicyRule{
		APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"*"},
	})
	e.ClusterRole("self-override", rbacv1.PolicyRule{APIGroups: []string{"headwater.dev"}, Resources: []string{"protectedobjects"}, Verbs: []string{"override"}})
	for _, user := range []string{"self-mallory", "self-breaker"} {
		e.Grant("", "self-operator", user)
	}
	e.Grant("", "self-override", "self-breaker")
	for _, engine := range []string{"Webhook", "Both"} {
		t.Run("with engine "+engine, func(t *testing.T) {
			e := &env{e.Of(t)}
			e.Sections = "protect: {engine: " + engine + "}\n"
			h := e.Start(`
- name: self
  source: {kind: Secret, namespace: self-src, name: shared}
  protect: {}
`)
			e.proven(h, "self")
			if engine == "Both" {
				e.failsOpen() // it is there, then
			} else {
				e.webhookAlone()
			}
			e.guardsTheConfiguration()
		})
	}
}

// guardsTheConfiguration checks that nobody but a holder of the override permission
// writes the webhook configuration.
func (e *env) guardsTheConfiguration() {
	e.Helper()
	t := e.T
	mallory := e.Client("self-mallory").AdmissionregistrationV1().ValidatingWebhookConfigurations()
	breaker := e.Client("self-breaker").AdmissionregistrationV1().ValidatingWebhookConfigurations()
	for sentence, do := range map[string]func(ctx context.Context) error{
		"a patch": func(ctx context.Context) error {
			_, err := mallory.Patch(ctx, webhookConfiguration, types.MergePatchType, []byte(`{"webhooks":[]}`), metav1.PatchOptions{DryRun: dry()})
			return err
		},
		"a delete": func(ctx context.Context) error {
			return mallory.Delete(ctx, webhookConfiguration, metav1.DeleteOptions{DryRun: dry()})
		},
		"a delete of the collection": func(ctx context.Context) error {
			return mallory.DeleteCollection(ctx, metav1.DeleteOptions{DryRun: dry()}, metav1.ListOptions{})
		},
	} {
		t.Run(sentence+" is refused", func(t *testing.T) {
			require.NoError(t, lab.Eventually(t.Context(), func(ctx context.Context) error { return lab.Refused(do(ctx)) }))
		})
	}
	require.NoError(t, breaker.Delete(t.Context(), webhookConfiguration, metav1.DeleteOptions{DryRun: dry()}), "a holder of the override permission")
	_, err := mallory.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "self-other"},
	}, metav1.CreateOptions{})
	require.NoError(t, err, "a configuration of one's own")
	require.NoError(t, mallory.Delete(t.Context(), "self-other", metav1.DeleteOptions{}))
}

// A mistake in the way of the webhook must block nobody.
func TestAWebhookThatWasNeverReachedBlocksNobody(t *testing.T) {
	e := newEnv(t)
	jane := e.sourceWithEditor("path", "path-jane")
	e.Grant("", "path-editor", "path-owner")
	owner := e.Client("path-owner")
	e.Sections = byTheWebhookAlone
	nowhere, err := lab.FreeAddress()
	require.NoError(t, err)
	options := e.Options(`
- name: path
  source: {kind: Secret, namespace: path-src, name: shared}
  protect: {allow: {clusterRoles: [], users: [path-owner]}}
`)
	options.Args = []string{"--webhook-url", "https://" + nowhere}
	h := e.Launch(options)
	require.NoError(t, h.Ready(t.Context()))
	e.failsOpen()
	require.NoError(t, lab.TryEdit(t.Context(), owner, "path-src", "shared", "x"))
	t.Log("and the policies refuse who is not allowed by the rule")
	e.protectedByPolicy(jane, "path-src", "shared")
	e.proven(h, "path")
	e.HasEvent("default", webhookConfiguration, "WebhookSilent")
	require.NoError(t, lab.TryEdit(t.Context(), owner, "path-src", "shared", "y"))
	h.Stop()

	options.Args = nil
	h = e.Launch(options)
	e.protectedByWebhook(jane, "path-src", "shared")
	e.proven(h, "path")
	e.HasNote("path-src", "shared", "ProtectionProven", "denies")
	e.webhookAlone()
}

func TestWhatIsRegisteredGoesWithAnUninstallation(t *testing.T) {
	e := newEnv(t) // the next one has the ClusterRole back
	jane := e.sourceWithEditor("uninstall", "uninstall-jane")
	h := e.Start(`
- name: uninstall
  source: {kind: Secret, namespace: uninstall-src, name: shared}
  protect: {}
`)
	e.proven(h, "uninstall")
	e.protectedByPolicy(jane, "uninstall-src", "shared")
	e.failsOpen()
	h.Stop()
	require.Error(t, lab.TryEdit(t.Context(), jane, "uninstall-src", "shared", "x"), "a stop takes nothing away")
	require.NoError(t, e.Admin.RbacV1().ClusterRoles().Delete(t.Context(), "headwater", metav1.DeleteOptions{}))
	admission := e.Admin.AdmissionregistrationV1()
	e.Eventually(func(ctx context.Context) error {
		webhooks, err := admission.ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		policies, err := admission.ValidatingAdmissionPolicies().List(ctx, registered)
		if err != nil {
			return err
		}
		bindings, err := admission.ValidatingAdmissionPolicyBindings().List(ctx, registered)
		return errors.Join(err, lab.ErrorIf(len(webhooks.Items)+len(policies.Items)+len(bindings.Items) > 0, "%d configurations, %d policies and %d bindings are left", len(webhooks.Items), len(policies.Items), len(bindings.Items)))
	})
	e.Eventually(func(ctx context.Context) error { return lab.TryEdit(ctx, jane, "uninstall-src", "shared", "x") })
}
