package protect

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/e2e"
	"github.com/headwater-k8s/headwater/test/harness"
)

// proven waits until the API server refuses edits of the sources of rules to
// an account without exemption.
func (e *env) proven(h *harness.Headwater, rules ...string) {
	e.Helper()
	for _, rule := range rules {
		e.HasMetric(h, 1, "headwater_protection_proven", map[string]string{"rule": rule})
	}
}

const engineRules = `
- name: eng
  source: {kind: Secret, namespace: eng-src, name: shared}
  sync: {namespaces: {include: [eng-a]}}
  protect:
    clones: Deny
    allow:
      clusterRoles: [eng-exempt]
      users: [eng-user]
      groups: [eng-group]
      serviceAccounts: [{namespace: eng-src, name: robot}]
- name: eng-updates
  source: {kind: Secret, namespace: eng-src, name: updates}
  protect: {operations: [Update], guardNamespace: false, message: "ask\nthe team"}
- name: eng-chosen
  source: {kind: ConfigMap, namespace: eng-src, selector: {matchLabels: {share: "yes"}}}
  protect: {guardNamespace: false}
- name: eng-twice
  source: {kind: ConfigMap, namespace: eng-src, name: chosen}
  protect: {guardNamespace: false, allow: {users: [eng-user]}}
- name: eng-healed
  source: {kind: Secret, namespace: eng-src, name: healed}
  sync: {namespaces: {include: [eng-a]}}
  protect: {guardNamespace: false}
- name: eng-warned
  source: {kind: Secret, namespace: eng-src, name: warned}
  protect: {guardNamespace: false, mode: Warn, message: "mind the gap"}
- name: eng-audited
  source: {kind: Secret, namespace: eng-src, name: audited}
  protect: {guardNamespace: false, mode: Audit}
`

// engineUsers may do anything to Secrets, ConfigMaps and namespaces, as far as
// RBAC goes.
var engineUsers = map[string][]string{ // and their groups
	"eng-nobody": nil, "eng-user": nil, "eng-ingroup": {"eng-group"}, "eng-bound": nil, "eng-locally": nil,
	"eng-override": nil, "eng-breaker": nil,
	"system:serviceaccount:eng-src:robot":                         nil,
	"system:serviceaccount:kube-system:namespace-controller":      nil,
	"system:serviceaccount:kube-system:generic-garbage-collector": nil,
	"system:kube-controller-manager":                              nil,
	harness.ServiceAccount:                                        nil,
}

var (
	exempt      = []string{"eng-user", "eng-ingroup", "eng-bound", "eng-override", "eng-breaker", "system:serviceaccount:eng-src:robot", harness.ServiceAccount}
	unlisted    = []string{"eng-breaker", harness.ServiceAccount} // may where a rule lists cluster-admin alone
	controllers = []string{
		"system:serviceaccount:kube-system:namespace-controller", "system:serviceaccount:kube-system:generic-garbage-collector",
		"system:kube-controller-manager",
	}
	collectors = controllers[1:]
	everybody  = append([]string{"eng-nobody", "eng-locally"}, slices.Concat(exempt, controllers)...)
)

// request is a write, as a dry run, and who may do it.
type request struct {
	do  func(ctx context.Context, as kubernetes.Interface) error
	may []string
}

func dry() []string { return []string{metav1.DryRunAll} }

func toSecret(namespace string, try attempt) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, as kubernetes.Interface) error {
		return try(ctx, as.CoreV1().Secrets(namespace))
	}
}

func toConfigMap(name, body string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, as kubernetes.Interface) error {
		_, err := as.CoreV1().ConfigMaps("eng-src").Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{DryRun: dry()})
		return err
	}
}

func engineRequests(owner string) map[string]request {
	source := func(try attempt, may []string) request { return request{toSecret("eng-src", try), may} }
	clone := func(try attempt, may []string) request { return request{toSecret("eng-a", try), may} }
	owned := func(how string) attempt {
		return patching("shared", fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":%q%s}]}}`, owner, how))
	}
	return map[string]request{
		"an edit of a value":             source(patching("shared", `{"data":{"k":"eA=="}}`), exempt),
		"a new key":                      source(patching("shared", `{"data":{"more":""}}`), exempt),
		"stringData":                     source(patching("shared", `{"stringData":{"k":"x"}}`), exempt),
		"freezing it":                    source(patching("shared", `{"immutable":true}`), exempt),
		"a label of ours":                source(patching("shared", `{"metadata":{"labels":{"headwater.dev/x":"y"}}}`), exempt),
		"an annotation of ours":          source(patching("shared", `{"metadata":{"annotations":{"headwater.dev/x":"y"}}}`), exempt),
		"a finalizer more":               source(patching("shared", `{"metadata":{"finalizers":["example.org/mine","example.org/pin"]}}`), exempt),
		"a finalizer less":               source(patching("shared", `{"metadata":{"finalizers":null}}`), everybody),
		"another owner":                  source(patching("shared", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"o","uid":"p"}]}}`), exempt),
		"an owner that controls":         source(owned(`,"controller":true,"blockOwnerDeletion":true`), exempt),
		"an owner let go":                source(patching("shared", `{"metadata":{"ownerReferences":null}}`), slices.Concat(exempt, collectors)),
		"an owner unblocked":             source(owned(""), slices.Concat(exempt, collectors)),
		"an owner let go, with an edit":  source(patching("shared", `{"metadata":{"ownerReferences":null},"data":{"k":"eA=="}}`), exempt),
		"a label of one's own":           source(patching("shared", `{"metadata":{"labels":{"team":"a"}}}`), everybody),
		"a rewrite without change":       source(rewriting("shared", func(*corev1.Secret) {}), everybody),
		"a rewrite with one":             source(rewriting("shared", func(s *corev1.Secret) { s.Data["k"] = []byte("x") }), exempt),
		"server-side apply":              {applying, exempt},
		"a delete":                       source(attemptToDelete("shared"), exempt),
		"a delete of the collection":     {collecting, exempt},
		"an edit, where updates count":   source(patching("updates", `{"data":{"k":"eA=="}}`), unlisted),
		"a delete, where updates count":  source(attemptToDelete("updates"), everybody),
		"an edit of what is selected":    {toConfigMap("selected", `{"data":{"k":"x"}}`), unlisted},
		"taking off what selects it":     {toConfigMap("selected", `{"metadata":{"labels":{"share":null}}}`), unlisted},
		"selecting another":              {toConfigMap("plain", `{"metadata":{"labels":{"share":"yes"}}}`), everybody},
		"an edit where two rules say no": {toConfigMap("chosen", `{"data":{"k":"x"}}`), unlisted},
		"an edit beside":                 {toConfigMap("plain", `{"data":{"k":"x"}}`), everybody},
		"an edit that warns":             source(patching("warned", `{"data":{"k":"eA=="}}`), everybody),
		"an edit on record":              source(patching("audited", `{"data":{"k":"eA=="}}`), everybody),
		"a delete of the namespace":      {deletingNamespace("eng-src"), exempt},
		"a delete of another namespace":  {deletingNamespace("eng-a"), everybody},
		"an edit of a denied clone":      clone(patching("shared", `{"data":{"k":"eA=="}}`), exempt),
		"a delete of a denied clone":     clone(attemptToDelete("shared"), slices.Concat(exempt, controllers)),
		"a rewrite of a denied clone":    clone(rewriting("shared", func(*corev1.Secret) {}), everybody),
		"an edit of a healed clone":      clone(patching("healed", `{"data":{"k":"eA=="}}`), everybody),
		"a delete of a healed clone":     clone(attemptToDelete("healed"), everybody),
		"a clone's label taken off":      clone(patching("healed", `{"metadata":{"labels":{"headwater.dev/clone":null}}}`), unlisted),
		"a clone's rule renamed":         clone(patching("healed", `{"metadata":{"annotations":{"headwater.dev/rule":"x"}}}`), unlisted),
		"a forged clone":                 clone(creating(forged("eng-a", "forged")), unlisted),
		"a Secret of one's own":          clone(creating(harness.Secret("eng-a", "own", nil)), everybody),
	}
}

func applying(ctx context.Context, as kubernetes.Interface) error {
	apply := applycorev1.Secret("shared", "eng-src").WithStringData(map[string]string{"k": "x"})
	_, err := as.CoreV1().Secrets("eng-src").Apply(ctx, apply, metav1.ApplyOptions{FieldManager: "x", Force: true, DryRun: dry()})
	return err
}

func collecting(ctx context.Context, as kubernetes.Interface) error {
	return as.CoreV1().Secrets("eng-src").DeleteCollection(ctx, metav1.DeleteOptions{DryRun: dry()}, metav1.ListOptions{FieldSelector: "metadata.name=shared"})
}

func deletingNamespace(name string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, as kubernetes.Interface) error {
		return as.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{DryRun: dry()})
	}
}

// engineWorld makes the users and what engineRules are about, and returns the UID
// of the source's owner.
func (e *env) engineWorld() (clients map[string]kubernetes.Interface, ownerUID string) {
	e.Helper()
	e.Namespace("eng-src")
	e.Namespace("eng-a")
	owner, err := e.Admin.CoreV1().ConfigMaps("eng-src").Create(e.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "owner"},
	}, metav1.CreateOptions{})
	require.NoError(e, err)
	for _, name := range []string{"shared", "updates", "healed", "warned", "audited"} {
		secret := harness.Secret("eng-src", name, map[string]string{"k": "v"})
		if name == "shared" {
			yes := true
			secret.Finalizers = []string{"example.org/mine"}
			secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID, BlockOwnerDeletion: &yes}}
		}
		_, err := e.Admin.CoreV1().Secrets("eng-src").Create(e.Context(), secret, metav1.CreateOptions{})
		require.NoError(e, err)
	}
	for name, labels := range map[string]map[string]string{"selected": {"share": "yes"}, "chosen": {"share": "yes"}, "plain": nil} {
		_, err := e.Admin.CoreV1().ConfigMaps("eng-src").Create(e.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: map[string]string{"k": "v"},
		}, metav1.CreateOptions{})
		require.NoError(e, err)
	}
	e.ClusterRole("eng-editor", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps", "namespaces"}, Verbs: []string{"*"}})
	e.ClusterRole("eng-exempt", e2e.SecretsEditor())
	override := rbacv1.PolicyRule{APIGroups: []string{"headwater.dev"}, Resources: []string{"protectedobjects"}, Verbs: []string{"override"}}
	e.ClusterRole("eng-override-all", override)
	override.ResourceNames = []string{"eng"}
	e.ClusterRole("eng-override-one", override)
	clients = map[string]kubernetes.Interface{}
	for user, groups := range engineUsers {
		e.Grant("", "eng-editor", user)
		clients[user] = e.Client(user, groups...)
	}
	e.Grant("", "eng-exempt", "eng-bound")
	e.Grant("eng-src", "eng-exempt", "eng-locally")
	e.Grant("", "eng-override-one", "eng-override")
	e.Grant("", "eng-override-all", "eng-breaker")
	return clients, string(owner.UID)
}

func TestTheEnginesGiveTheSameVerdicts(t *testing.T) {
	e := newEnv(t)
	clients, owner := e.engineWorld()
	for engine, by := range map[string]string{"Webhook": byWebhook, "Policy": byPolicy, "Both": byPolicy} {
		e.Sections = fmt.Sprintf("protect: {engine: %s}\n", engine)
		h := e.Start(engineRules)
		e.HasClone("eng-a", "shared", map[string]string{"k": "v"})
		e.HasClone("eng-a", "healed", map[string]string{"k": "v"})
		e.proven(h, "eng", "eng-updates", "eng-chosen", "eng-twice", "eng-healed")
		e.alone(clients["eng-nobody"], by, "eng-src", "eng-a")
		for sentence, request := range engineRequests(owner) {
			for user, client := range clients {
				err := request.do(t.Context(), client)
				if slices.Contains(request.may, user) {
					require.NoError(t, err, "%s: %s by %s", engine, sentence, user)
				} else {
					require.NoError(t, harness.Refused(err), "%s: %s by %s", engine, sentence, user)
					require.Regexp(t, by, err.Error(), "%s: %s by %s", engine, sentence, user)
				}
			}
		}
		e.warns("eng-src", "warned", "mind the gap")
		e.protectsInDeletion(clients, engine)
		h.Stop()
	}
}

func TestNobodyGetsInBetweenTwoEngines(t *testing.T) {
	e := newEnv(t)
	e.Namespace("switch-src")
	e.Namespace("switch-a")
	for _, name := range []string{"shared", "other"} {
		e.Secret("switch-src", name, map[string]string{"k": "v"})
	}
	e.ClusterRole("switch-editor", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets", "namespaces"}, Verbs: []string{"*"}})
	for _, user := range []string{"switch-mallory", "switch-owner"} {
		e.Grant("", "switch-editor", user)
	}
	mallory, owner := e.Client("switch-mallory"), e.Client("switch-owner")
	rules := `
- name: switch
  source: {kind: Secret, namespace: switch-src, name: shared}
  sync: {namespaces: {include: [switch-a]}}
  protect: {clones: Deny, allow: {users: [switch-owner]}}
`
	h := e.Start(rules)
	e.HasClone("switch-a", "shared", map[string]string{"k": "v"})
	e.proven(h, "switch")
	load := e.newTraffic("switch-src", "shared", "other", owner, mallory)
	load.also(t.Context(), "refused write to a clone", func(ctx context.Context, n int) error {
		return harness.Refused(e2e.TryEdit(ctx, mallory, "switch-a", "shared", strconv.Itoa(n)))
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

// protectsInDeletion checks that what is in deletion is protected to the last.
func (e *env) protectsInDeletion(clients map[string]kubernetes.Interface, engine string) {
	e.Helper()
	configMaps := e.Admin.CoreV1().ConfigMaps("eng-src")
	pinned, err := configMaps.Create(e.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "pinned", Labels: map[string]string{"share": "yes"}, Finalizers: []string{"example.org/mine"},
	}}, metav1.CreateOptions{})
	require.NoError(e, err)
	require.NoError(e, configMaps.Delete(e.Context(), pinned.Name, metav1.DeleteOptions{}))
	require.NoError(e, harness.Refused(toConfigMap("pinned", `{"data":{"k":"x"}}`)(e.Context(), clients["eng-nobody"])), engine)
	letGo := func(ctx context.Context) error {
		_, err := configMaps.Patch(ctx, pinned.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		return err
	}
	e.Eventually(letGo)
}

// warns checks that an edit by eng-nobody passes with one warning of this text.
func (e *env) warns(namespace, name, text string) {
	e.Helper()
	warnings := &warningRecorder{}
	config := e.Config("eng-nobody")
	config.WarningHandler = warnings
	client, err := kubernetes.NewForConfig(config)
	require.NoError(e, err)
	e.Eventually(func(ctx context.Context) error { // two, while one engine follows the other
		warnings.texts = nil
		require.NoError(e, e2e.TryEdit(ctx, client, namespace, name, "x"))
		if len(warnings.texts) != 1 {
			return fmt.Errorf("%d warnings: %q", len(warnings.texts), warnings.texts)
		}
		return nil
	})
	require.True(e, strings.HasSuffix(warnings.texts[0], text), warnings.texts[0])
}
