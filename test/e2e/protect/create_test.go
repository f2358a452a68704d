package protect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/headwater-k8s/headwater/test/lab"
)

const makeRules = `
- name: make
  source: {kind: Secret, namespace: make-src, name: missing}
  protect: {guardNamespace: false, allow: {clusterRoles: [], users: [make-user]}}
- name: make-chosen
  source: {kind: Secret, namespace: make-src, selector: {matchLabels: {share: "yes"}}}
  protect: {guardNamespace: false, allow: {clusterRoles: [], users: [make-user]}}
- name: make-copied
  source: {kind: Secret, namespace: make-src, name: copied}
  sync: {namespaces: {include: [make-a]}, target: {copyLabels: ["*/tier", team], copyAnnotations: ["*"]}}
  protect: {guardNamespace: false, clones: Deny, allow: {clusterRoles: [], users: [make-user]}}
- name: make-open
  source: {kind: Secret, namespace: make-src, name: open}
  protect: {guardNamespace: false, operations: [Update, Delete]}
- name: make-kept
  source: {kind: Secret, namespace: make-src, name: kept}
  sync: {namespaces: {include: [make-a]}}
  protect: {guardNamespace: false, operations: [Delete], clones: Deny, allow: {clusterRoles: [], users: [make-user]}}
- name: make-warned
  source: {kind: Secret, namespace: make-src, name: warned}
  protect: {guardNamespace: false, mode: Warn}
- name: make-audited
  source: {kind: Secret, namespace: make-src, name: audited}
  protect: {guardNamespace: false, mode: Audit}
`

// makers may do anything to Secrets, as far as RBAC goes.
var makers = []string{"make-nobody", "make-user", "make-override", "make-breaker", lab.ServiceAccount, controllers[0], controllers[1], controllers[2]}

// labelledSecret is one that make-chosen selects.
func labelledSecret(meta metav1.ObjectMeta) *corev1.Secret {
	meta.Labels = map[string]string{"share": "yes"}
	return &corev1.Secret{ObjectMeta: meta}
}

func applyingTo(apply *applycorev1.SecretApplyConfiguration) attempt {
	return func(ctx context.Context, secrets typedcorev1.SecretInterface) error {
		_, err := secrets.Apply(ctx, apply, metav1.ApplyOptions{FieldManager: "x", Force: true, DryRun: dry()})
		return err
	}
}

func makeRequests() map[string]request {
	may := []string{"make-user", "make-breaker", lab.ServiceAccount}
	named := append([]string{"make-override"}, may...)
	source := func(try attempt, may []string) request { return request{toSecret("make-src", try), may} }
	const owner = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"o","uid":"p"}]}}`
	return map[string]request{
		"a missing source":                          source(creating(lab.Secret("make-src", "missing", nil)), named),
		"one by server-side apply":                  source(applyingTo(applycorev1.Secret("missing", "make-src")), named),
		"what a rule selects":                       source(creating(labelledSecret(metav1.ObjectMeta{Name: "new"})), may),
		"what a rule selects, of any name":          source(creating(labelledSecret(metav1.ObjectMeta{GenerateName: "new-"})), may),
		"a source of what is there":                 source(patching("plain", `{"metadata":{"labels":{"share":"yes"}}}`), may),
		"a source of what is there, by apply":       source(applyingTo(applycorev1.Secret("plain", "make-src").WithLabels(map[string]string{"share": "yes"})), may),
		"a source of what is there, whole":          source(rewriting("plain", func(s *corev1.Secret) { s.Labels = map[string]string{"share": "yes"} }), may),
		"a missing source that a rule leaves open":  source(creating(lab.Secret("make-src", "open", nil)), makers),
		"a missing source of which a rule warns":    source(creating(lab.Secret("make-src", "warned", nil)), makers),
		"a missing source which a rule puts down":   source(creating(lab.Secret("make-src", "audited", nil)), makers),
		"another Secret":                            source(creating(lab.Secret("make-src", "other", nil)), makers),
		"another Secret of any name":                source(creating(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "missing"}}), makers),
		"a Secret of that name elsewhere":           {toSecret("make-a", creating(lab.Secret("make-a", "missing", nil))), makers},
		"a label that is copied":                    source(patching("copied", `{"metadata":{"labels":{"example.org/tier":"x"}}}`), may),
		"an annotation that is copied":              source(patching("copied", `{"metadata":{"annotations":{"note":"x"}}}`), may),
		"a label that is not copied":                source(patching("copied", `{"metadata":{"labels":{"tier":"x"}}}`), makers),
		"an annotation that never is":               source(patching("copied", `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"y"}}}`), makers),
		"such a label of a clone, which is healed":  {toSecret("make-a", patching("copied", `{"metadata":{"labels":{"team":"x"}}}`)), makers},
		"an edit, where deletions count":            source(patching("kept", `{"data":{"k":"eA=="}}`), makers),
		"an owner, where deletions count":           source(patching("kept", owner), may),
		"an edit of a clone, where deletions count": {toSecret("make-a", patching("kept", `{"data":{"k":"eA=="}}`)), makers},
		"a clone's owner, where deletions count":    {toSecret("make-a", patching("kept", owner)), may},
	}
}

func TestNobodyElseMakesASource(t *testing.T) {
	e := newEnv(t)
	e.Unlimited()
	e.Namespaces("make-src", "make-a")
	for _, name := range []string{"copied", "kept", "plain"} {
		e.Secret("make-src", name, map[string]string{"k": "v"})
	}
	e.ClusterRole("make-editor", lab.SecretsEditor())
	override := rbacv1.PolicyRule{APIGroups: []string{"headwater.dev"}, Resources: []string{"protectedobjects"}, Verbs: []string{"override"}}
	e.ClusterRole("make-override-all", override)
	override.ResourceNames = []string{"make"}
	e.ClusterRole("make-override-one", override)
	e.Grant("", "make-override-one", "make-override")
	e.Grant("", "make-override-all", "make-breaker")
	clients := map[string]kubernetes.Interface{}
	for _, user := range makers {
		e.Grant("", "make-editor", user)
		clients[user] = e.Client(user)
	}
	missing := toSecret("make-src", creating(lab.Secret("make-src", "missing", nil)))
	for engine, by := range map[string]string{"Webhook": byWebhook, "Policy": byPolicy, "Both": byPolicy} {
		e.Sections = fmt.Sprintf("protect: {engine: %s}\n", engine)
		h := e.Start(makeRules)
		e.HasClone("make-a", "kept", map[string]string{"k": "v"})
		e.HasClone("make-a", "copied", map[string]string{"k": "v"})
		e.Eventually(func(ctx context.Context) error { return lab.Refused(missing(ctx, clients["make-nobody"])) })
		e.registeredFor(engine)
		for _, try := range []func(context.Context, kubernetes.Interface) error{missing, toSecret("make-a", attemptToDelete("kept"))} {
			e.Eventually(func(ctx context.Context) error {
				if err := try(ctx, clients["make-nobody"]); err == nil || !strings.Contains(err.Error(), by) {
					return fmt.Errorf("not refused by %s: %w", by, err)
				}
				return nil
			})
		}
		for _, request := range makeRequests() { // once the engine before asks nobody any more
			e.Eventually(func(ctx context.Context) error { return request.do(ctx, clients["make-user"]) })
		}
		for sentence, request := range makeRequests() {
			for user, client := range clients {
				err := request.do(t.Context(), client)
				if slices.Contains(request.may, user) {
					require.NoError(t, err, "%s: %s by %s", engine, sentence, user)
				} else {
					require.NoError(t, lab.Refused(err), "%s: %s by %s", engine, sentence, user)
					require.Regexp(t, by, err.Error(), "%s: %s by %s", engine, sentence, user)
				}
			}
		}
		require.ErrorContains(t, missing(t.Context(), clients["make-nobody"]),
			`Secret make-src/missing would be a source of rule "make", which protects it: user make-user may make it`)
		require.ErrorContains(t, makeRequests()["a source of what is there"].do(t.Context(), clients["make-nobody"]),
			`Secret make-src/plain would be a source of rule "make-chosen", which protects it: user make-user may make it`)
		h.Stop()
	}
}
