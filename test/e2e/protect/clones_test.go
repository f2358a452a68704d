package protect

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

// attempt is a write that is judged on the real API server, as a dry run, so
// that each meets the same object.
type attempt func(ctx context.Context, secrets typedcorev1.SecretInterface) error

func patching(name, body string) attempt {
	return func(ctx context.Context, secrets typedcorev1.SecretInterface) error {
		_, err := secrets.Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
}

func creating(secret *corev1.Secret) attempt {
	return func(ctx context.Context, secrets typedcorev1.SecretInterface) error {
		_, err := secrets.Create(ctx, secret, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
}

func attemptToDelete(name string) attempt {
	return func(ctx context.Context, secrets typedcorev1.SecretInterface) error {
		return secrets.Delete(ctx, name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	}
}

func deletingAll(ctx context.Context, secrets typedcorev1.SecretInterface) error {
	return secrets.DeleteCollection(ctx, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, metav1.ListOptions{LabelSelector: mark.CloneLabel})
}

// rewriting is what kubectl apply of the whole manifest does.
func rewriting(name string, change func(*corev1.Secret)) attempt {
	return func(ctx context.Context, secrets typedcorev1.SecretInterface) error {
		secret, err := secrets.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(secret)
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
}

// forged is a Secret that carries the marks of a clone.
func forged(namespace, name string) *corev1.Secret {
	secret := lab.Secret(namespace, name, nil)
	secret.Labels = map[string]string{mark.CloneLabel: "true"}
	secret.Annotations = map[string]string{mark.Rule: "marks", mark.Source: "Secret/marks-src/shared"}
	return secret
}

// placed is secret with marks for that place.
func placed(secret *corev1.Secret, target string) *corev1.Secret {
	secret.Annotations[mark.Target] = target
	return secret
}

// copied is a Secret with all marks of the clone of Secret shared by rule, under another name.
func copied(namespace, rule, source string) *corev1.Secret {
	secret := placed(forged(namespace, "copy"), namespace+"/shared")
	secret.Annotations[mark.Rule], secret.Annotations[mark.Source] = rule, "Secret/"+source+"/shared"
	return secret
}

// labelled is a Secret with the labels of a clone alone, as some tools copy them.
func labelled(namespace, name string) *corev1.Secret {
	secret := lab.Secret(namespace, name, nil)
	secret.Labels = map[string]string{mark.CloneLabel: "true", mark.Rule: "marks"}
	return secret
}

func TestMarksAreHeadwatersAlone(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("marks-src", "marks-a", "marks-b")
	data := map[string]string{"k": "v"}
	e.Secret("marks-src", "shared", data)
	e.Secret("marks-a", "own", data)
	e.Create("marks-a", labelled("marks-a", "labelled"))
	e.Create("marks-a", placed(forged("marks-a", "copy"), "marks-a/shared"))
	e.ClusterRole("marks-editor", lab.SecretsEditor())
	e.Grant("", "marks-editor", "marks-mallory")
	e.Grant("", "marks-editor", "marks-keeper")
	h := e.StartAlone(lab.Rule("marks", `sync: {namespaces: {include: ["marks-*"]}}`, "protect: {allow: {users: [marks-keeper]}}"))
	e.HasClone("marks-a", "shared", data)
	mallory, keeper := e.Client("marks-mallory"), e.Client("marks-keeper").CoreV1().Secrets("marks-a")
	secrets := mallory.CoreV1().Secrets("marks-a")
	e.protected(mallory, "marks-src", "shared")
	refusals := map[string]attempt{
		"taking the label off a clone":        patching("shared", `{"metadata":{"labels":{"headwater.dev/clone":null}}}`),
		"changing its value":                  patching("shared", `{"metadata":{"labels":{"headwater.dev/clone":"no"}}}`),
		"taking all labels off, with an edit": patching("shared", `{"metadata":{"labels":null},"data":{"k":"eA=="}}`),
		"taking an annotation off":            patching("shared", `{"metadata":{"annotations":{"headwater.dev/rule":null}}}`),
		"naming another rule by its label":    patching("shared", `{"metadata":{"labels":{"headwater.dev/rule":"other"}}}`),
		"naming another source":               patching("shared", `{"metadata":{"annotations":{"headwater.dev/source":"Secret/x/y"}}}`),
		"setting one more":                    patching("shared", `{"metadata":{"annotations":{"headwater.dev/on-rule-removed":"Delete"}}}`),
		"sending it elsewhere":                patching("shared", `{"metadata":{"annotations":{"headwater.dev/target":"x/y"}}}`),
		"taking its place off":                patching("shared", `{"metadata":{"annotations":{"headwater.dev/target":null}}}`),
		"marking an object of one's own":      patching("own", `{"metadata":{"labels":{"headwater.dev/clone":"true"},"annotations":{"headwater.dev/rule":"marks","headwater.dev/source":"Secret/marks-src/shared"}}}`),
		"creating a forged clone":             creating(forged("marks-a", "forged")),
		"creating one with its place":         creating(placed(forged("marks-a", "forged"), "marks-a/forged")),
		"creating one by server-side apply": func(ctx context.Context, secrets typedcorev1.SecretInterface) error {
			apply := applycorev1.Secret("applied", "marks-a").WithLabels(map[string]string{mark.CloneLabel: "true"}).
				WithAnnotations(forged("marks-a", "applied").Annotations)
			_, err := secrets.Apply(ctx, apply, metav1.ApplyOptions{FieldManager: "mallory", DryRun: []string{metav1.DryRunAll}})
			return err
		},
	}
	for _, try := range refusals { // and not a webhook of the test before, which cannot be reached
		e.Eventually(func(ctx context.Context) error { return lab.Refused(try(ctx, secrets)) })
	}
	for sentence, try := range refusals {
		t.Run(sentence+" is refused", func(t *testing.T) {
			require.NoError(t, lab.Refused(try(t.Context(), secrets)))
			require.NoError(t, lab.Refused(try(t.Context(), keeper)), "a user that the rule allows to change its source")
			require.NoError(t, try(t.Context(), e.Admin.CoreV1().Secrets("marks-a")), "a holder of the override permission")
		})
	}
	passes := map[string]attempt{
		"a label of one's own on a clone":       patching("shared", `{"metadata":{"labels":{"team":"a"}}}`),
		"a clone's own manifest, applied again": rewriting("shared", func(s *corev1.Secret) { s.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = "{}" }),
		"a rewrite that changes nothing":        rewriting("shared", func(*corev1.Secret) {}),
		"an edit of a clone, which is healed":   patching("shared", `{"data":{"k":"eA=="}}`),
		"a delete of a clone, which is healed":  attemptToDelete("shared"),
		"what one does with one's own":          patching("own", `{"data":{"k":"eA=="},"metadata":{"labels":{"a":"b"}}}`),
		"creating what is no clone":             creating(lab.Secret("marks-a", "new", nil)),
		"creating a copy of a clone's labels":   creating(labelled("marks-a", "new")),
		"creating a copy with all marks":        creating(placed(forged("marks-a", "new"), "marks-a/shared")),
		"an edit of such a copy":                patching("copy", `{"data":{"k":"eA=="},"metadata":{"annotations":{"headwater.dev/rule":"mine"}}}`),
		"an edit of a copy of the labels":       patching("labelled", `{"data":{"k":"eA=="},"metadata":{"labels":{"headwater.dev/clone":null}}}`),
		"a delete of such a copy":               attemptToDelete("copy"),
		"a delete of a copy of the labels":      attemptToDelete("labelled"),
	}
	for sentence, try := range passes {
		t.Run(sentence+" passes", func(t *testing.T) { require.NoError(t, try(t.Context(), secrets)) })
	}
	t.Run("Headwater is never asked about what it writes itself", func(t *testing.T) {
		e.Edit("marks-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("v2") })
		e.HasClone("marks-a", "shared", map[string]string{"k": "v2"})
		e.Edit("marks-a", "shared", func(s *corev1.Secret) { s.Labels = nil })
		e.Eventually(func(context.Context) error {
			if clone := e.Get("marks-a", "shared"); clone.Labels[mark.CloneLabel] != "true" {
				return fmt.Errorf("the clone is not healed")
			}
			return nil
		})
		asked, err := h.Metric(t.Context(), "headwater_protect_requests_total", map[string]string{"reason": "ByHeadwater"})
		require.NoError(t, err)
		require.Zero(t, asked)
	})
	for _, try := range refusals { // and by the policies, for a webhook that need not answer
		e.Eventually(func(ctx context.Context) error {
			err := try(ctx, secrets)
			return lab.ErrorIf(err == nil || !strings.Contains(err.Error(), byPolicy), "not refused by a policy: %w", err)
		})
	}
	for sentence, text := range map[string]string{"creating one with its place": "leave out what begins with", "taking its place off": "as it is"} {
		require.ErrorContains(t, refusals[sentence](t.Context(), secrets), text, sentence)
	}
	e.failsOpen()
	h.Kill()
	e.Eventually(func(ctx context.Context) error { return passes["an edit of a clone, which is healed"](ctx, secrets) }) // the API server has heard of it
	for sentence, try := range refusals {
		t.Run("with Headwater down, "+sentence+" is refused", func(t *testing.T) {
			require.Error(t, try(t.Context(), secrets))
			require.NoError(t, try(t.Context(), e.Admin.CoreV1().Secrets("marks-a")), "break-glass")
		})
	}
	for sentence, try := range passes {
		t.Run("invariant 9: with Headwater down, "+sentence+" passes", func(t *testing.T) { require.NoError(t, try(t.Context(), secrets)) })
	}
}

func TestClonesMayBeDenied(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("deny-src", "deny-b")
	require.NoError(t, lab.EnsureNamespace(t.Context(), e.Admin, "deny-a", nil))
	data := map[string]string{"k": "v"}
	e.Secret("deny-src", "shared", data)
	e.Secret("deny-src", "healed", data)
	e.Create("deny-a", copied("deny-a", "deny", "deny-src"))
	tagged := labelled("deny-a", "labelled")
	tagged.Labels[mark.Rule] = "deny"
	e.Create("deny-a", tagged)
	e.ClusterRole("deny-editor", lab.SecretsEditor(), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"*"}})
	e.ClusterRole("deny-override", rbacv1.PolicyRule{
		APIGroups: []string{"headwater.dev"}, Resources: []string{"protectedobjects"}, ResourceNames: []string{"deny"}, Verbs: []string{"override"},
	})
	for _, user := range []string{"deny-mallory", "deny-keeper", "deny-breaker"} {
		e.Grant("", "deny-editor", user)
	}
	e.Grant("", "deny-override", "deny-breaker")
	h := e.StartAlone(`
- name: deny
  source: {kind: Secret, namespace: deny-src, name: shared}
  sync: {namespaces: {include: ["deny-?"]}}
  protect: {clones: Deny, allow: {users: [deny-keeper]}}
- name: deny-not
  source: {kind: Secret, namespace: deny-src, name: healed}
  sync: {namespaces: {include: ["deny-?"]}}
  protect: {}
`)
	e.HasClone("deny-a", "shared", data)
	e.HasClone("deny-a", "healed", data)
	mallory, keeper, breaker := e.Client("deny-mallory"), e.Client("deny-keeper"), e.Client("deny-breaker")
	e.protected(mallory, "deny-a", "shared")
	in := func(user kubernetes.Interface) typedcorev1.SecretInterface { return user.CoreV1().Secrets("deny-a") }
	refusals := map[string]attempt{
		"an edit":             patching("shared", `{"data":{"k":"eA=="}}`),
		"a key more":          patching("shared", `{"data":{"more":"eA=="}}`),
		"freezing it":         patching("shared", `{"immutable":true}`),
		"giving it an owner":  patching("shared", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"x"}]}}`),
		"pinning it":          patching("shared", `{"metadata":{"finalizers":["example.org/pin"]}}`),
		"deleting it":         attemptToDelete("shared"),
		"deleting all clones": deletingAll,
	}
	for sentence, try := range refusals {
		t.Run(sentence+" is refused", func(t *testing.T) {
			require.NoError(t, lab.Refused(try(t.Context(), in(mallory))))
			require.NoError(t, try(t.Context(), in(breaker)), "a holder of the override permission for this rule")
		})
	}
	require.NoError(t, lab.TryEdit(t.Context(), keeper, "deny-a", "shared", "x"), "a user that the rule allows")
	for sentence, try := range map[string]attempt{
		"a label of one's own":                patching("shared", `{"metadata":{"labels":{"team":"a"}}}`),
		"a rewrite that changes nothing":      rewriting("shared", func(*corev1.Secret) {}),
		"an edit of a clone of another rule":  patching("healed", `{"data":{"k":"eA=="}}`),
		"a delete of a clone of another rule": attemptToDelete("healed"),
		"an edit of a copy of a clone":        patching("copy", `{"data":{"k":"eA=="}}`),
		"a delete of a copy of a clone":       attemptToDelete("copy"),
		"an edit of a copy of its labels":     patching("labelled", `{"data":{"k":"eA=="}}`),
		"a delete of a copy of its labels":    attemptToDelete("labelled"),
	} {
		t.Run(sentence+" passes", func(t *testing.T) { require.NoError(t, try(t.Context(), in(mallory))) })
	}
	e.Edit("deny-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("v2") })
	e.HasClone("deny-a", "shared", map[string]string{"k": "v2"})
	e.Edit("deny-a", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("x") })
	e.HasClone("deny-a", "shared", map[string]string{"k": "v2"})

	e.protectedByPolicy(mallory, "deny-a", "shared")
	e.failsOpen()
	h.Kill()
	ctx := t.Context()
	e.Eventually(func(ctx context.Context) error { return lab.TryEdit(ctx, breaker, "deny-a", "shared", "x") }) // the API server has heard of it
	require.Error(t, lab.TryEdit(ctx, mallory, "deny-a", "shared", "x"), "the outage leaves the clone protected")
	require.NoError(t, lab.TryEdit(ctx, breaker, "deny-a", "shared", "x"), "break-glass")
	require.NoError(t, lab.TryEdit(ctx, mallory, "deny-a", "healed", "x"), "invariant 9: the outage blocks clones of other rules")
	require.NoError(t, mallory.CoreV1().Namespaces().Delete(ctx, "deny-a", metav1.DeleteOptions{}))
	e.Eventually(func(ctx context.Context) error { // the namespace controller empties it during the outage
		_, err := e.Admin.CoreV1().Namespaces().Get(ctx, "deny-a", metav1.GetOptions{})
		return lab.ErrorIf(!apierrors.IsNotFound(err), "the namespace is still there: %w", err)
	})
}

// Headwater heals its clones whatever becomes of the webhook.
func TestTheWebhookIsNeverAskedAboutHeadwatersOwnWrites(t *testing.T) {
	e := newEnv(t)
	mallory := e.sourceWithEditor("own", "own-mallory")
	e.Namespace("own-a")
	e.Secret("own-src", "named", map[string]string{"k": "v"})
	e.Sections = byTheWebhookAlone
	h := e.Start(`
- name: own
  source: {kind: Secret, namespace: own-src, name: shared}
  sync: {namespaces: {include: [own-a]}, target: {labels: {share: "yes"}}}
  protect: {clones: Deny}
- name: own-named
  source: {kind: Secret, namespace: own-src, name: named}
  sync: {namespaces: {include: [own-a]}}
  protect: {}
- name: own-selects-a-clone
  source: {kind: Secret, namespace: own-a, selector: {matchLabels: {share: "yes"}}}
  protect: {guardNamespace: false}
- name: own-names-a-clone
  source: {kind: Secret, namespace: own-a, name: named}
  protect: {guardNamespace: false}
`)
	for _, name := range []string{"shared", "named"} {
		e.HasClone("own-a", name, map[string]string{"k": "v"})
	}
	e.protectedByWebhook(mallory, "own-src", "shared")
	for _, name := range []string{"shared", "named"} {
		e.protected(mallory, "own-a", name)
		e.Edit("own-src", name, func(s *corev1.Secret) { s.Data["k"] = []byte("w") })
		e.HasClone("own-a", name, map[string]string{"k": "w"})
	}
	asked, err := h.Metric(t.Context(), "headwater_protect_requests_total", map[string]string{"reason": "ByHeadwater"})
	require.NoError(t, err)
	require.Zero(t, asked)
}

// The old policies let writes under the other name pass until Headwater updates them.
func TestAStartUnderAnotherNameIsNoFailure(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("rename-src", "rename-a", "rename-b")
	e.Secret("rename-src", "shared", map[string]string{"k": "v"})
	o := e.Options(lab.OneRule("rename") + "  protect: {}\n")
	require.NoError(t, e.Cluster.KubeconfigFor(o.Kubeconfig, "first-name", "system:masters"))
	first := e.Launch(o)
	require.NoError(t, first.Ready(t.Context()))
	e.proven(first, "rename")
	e.HasClone("rename-b", "shared", map[string]string{"k": "v"})
	first.Stop()
	e.Edit("rename-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("v2") })

	second := e.Start(lab.OneRule("rename") + "  protect: {}\n")
	for _, namespace := range []string{"rename-a", "rename-b"} {
		e.HasClone(namespace, "shared", map[string]string{"k": "v2"})
	}
	log, err := second.Log()
	require.NoError(t, err)
	require.NotContains(t, log, "CloneFailed")
	require.NotRegexp(t, `"logger":"sync",[^\n]*"msg":"[^"]*retrying"`, log)
}
