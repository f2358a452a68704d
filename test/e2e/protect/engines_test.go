package protect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/lab"
)

// proven waits until the API server refuses edits of the sources of rules to
// an account without exemption.
func (e *env) proven(h *lab.Headwater, rules ...string) {
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
	"eng-override": nil, "eng-breaker": nil, "eng-system": nil,
	"system:serviceaccount:eng-src:robot":                         nil,
	"system:serviceaccount:kube-system:namespace-controller":      nil,
	"system:serviceaccount:kube-system:generic-garbage-collector": nil,
	"system:kube-controller-manager":                              nil,
	"system:serviceaccount:eng-src:namespace-controller":          nil,
	"system:serviceaccount:eng-src:generic-garbage-collector":     nil,
	lab.ServiceAccount: nil,
}

var (
	exempt = []string{
		"eng-user", "eng-ingroup", "eng-bound", "eng-override", "eng-breaker", "system:serviceaccount:eng-src:robot", lab.ServiceAccount,
	}
	unlisted    = []string{"eng-breaker", lab.ServiceAccount} // may where a rule lists cluster-admin alone
	controllers = []string{
		"system:serviceaccount:kube-system:namespace-controller", "system:serviceaccount:kube-system:generic-garbage-collector",
		"system:kube-controller-manager",
	}
	systemIdentities = []string{"eng-system"} // of the file
	deleters         = slices.Concat(controllers, systemIdentities)
	collectors       = deleters[1:]
	everybody        = slices.Collect(maps.Keys(engineUsers))
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
		"a delete":                       source(attemptToDelete("shared"), exempt),
		"an edit, where updates count":   source(patching("updates", `{"data":{"k":"eA=="}}`), unlisted),
		"a delete, where updates count":  source(attemptToDelete("updates"), everybody),
		"an edit of what is selected":    {toConfigMap("selected", `{"data":{"k":"x"}}`), unlisted},
		"taking off what selects it":     {toConfigMap("selected", `{"metadata":{"labels":{"share":null}}}`), unlisted},
		"selecting another":              {toConfigMap("plain", `{"metadata":{"labels":{"share":"yes"}}}`), unlisted},
		"an edit where two rules say no": {toConfigMap("chosen", `{"data":{"k":"x"}}`), unlisted},
		"an edit beside":                 {toConfigMap("plain", `{"data":{"k":"x"}}`), everybody},
		"an edit that warns":             source(patching("warned", `{"data":{"k":"eA=="}}`), everybody),
		"an edit on record":              source(patching("audited", `{"data":{"k":"eA=="}}`), everybody),
		"a delete of the namespace":      {deletingNamespace("eng-src"), exempt},
		"a delete of another namespace":  {deletingNamespace("eng-a"), everybody},
		"an edit of a denied clone":      clone(patching("shared", `{"data":{"k":"eA=="}}`), exempt),
		"a delete of a denied clone":     clone(attemptToDelete("shared"), slices.Concat(exempt, deleters)),
		"a rewrite of a denied clone":    clone(rewriting("shared", func(*corev1.Secret) {}), everybody),
		"an edit of a copy of it":        clone(patching("copy", `{"data":{"k":"eA=="}}`), everybody),
		"a delete of a copy of it":       clone(attemptToDelete("copy"), everybody),
		"an edit of a healed clone":      clone(patching("healed", `{"data":{"k":"eA=="}}`), everybody),
		"a delete of a healed clone":     clone(attemptToDelete("healed"), everybody),
		"a clone's label taken off":      clone(patching("healed", `{"metadata":{"labels":{"headwater.dev/clone":null}}}`), unlisted),
		"a clone's rule renamed":         clone(patching("healed", `{"metadata":{"annotations":{"headwater.dev/rule":"x"}}}`), unlisted),
		"a forged clone":                 clone(creating(forged("eng-a", "forged")), unlisted),
		"a Secret of one's own":          clone(creating(lab.Secret("eng-a", "own", nil)), everybody),
	}
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
	e.Namespaces("eng-src", "eng-a")
	owner, err := e.Admin.CoreV1().ConfigMaps("eng-src").Create(e.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "owner"},
	}, metav1.CreateOptions{})
	require.NoError(e, err)
	for _, name := range []string{"shared", "updates", "healed", "warned", "audited"} {
		secret := lab.Secret("eng-src", name, map[string]string{"k": "v"})
		if name == "shared" {
			yes := true
			secret.Finalizers = []string{"example.org/mine"}
			secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID, BlockOwnerDeletion: &yes}}
		}
		e.Create("eng-src", secret)
	}
	for name, labels := range map[string]map[string]string{"selected": {"share": "yes"}, "chosen": {"share": "yes"}, "plain": nil} {
		e.Create("eng-src", &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: map[string]string{"k": "v"},
		})
	}
	e.Create("eng-a", copied("eng-a", "eng", "eng-src"))
	e.ClusterRole("eng-editor", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps", "namespaces"}, Verbs: []string{"*"}})
	e.ClusterRole("eng-exempt", lab.SecretsEditor())
	override := rbacv1.PolicyRule{APIGroups: []string{"headwater.dev"}, Resources: []string{"protectedobjects"}, Verbs: []string{"override"}}
	e.ClusterRole("eng-override-all", override)
	override.ResourceNames = []string{"eng"}
	e.ClusterRole("eng-override-one", override)
	clients = map[string]kubernetes.Interface{}
	for user, groups := range engineUsers {
		e.Grant("", "eng-editor", user)
		clients[user] = e.Client(user, groups...)
	}
	// Some are not impersonated: by token and by certificate, one who may and one who may not.
	for _, account := range []string{"robot", "namespace-controller", "generic-garbage-collector"} {
		clients["system:serviceaccount:eng-src:"+account] = e.byToken("eng-src", account)
	}
	for _, user := range []string{"eng-ingroup", "eng-locally"} {
		clients[user] = e.byCertificate(user, engineUsers[user]...)
	}
	e.Grant("", "eng-exempt", "eng-bound")
	e.Grant("eng-src", "eng-exempt", "eng-locally")
	e.Grant("", "eng-override-one", "eng-override")
	e.Grant("", "eng-override-all", "eng-breaker")
	return clients, string(owner.UID)
}

func TestTheEnginesGiveTheSameVerdicts(t *testing.T) {
	e := newEnv(t)
	e.Unlimited()
	clients, owner := e.engineWorld()
	e.waysWorld()
	few := map[string]kubernetes.Interface{}
	for _, user := range []string{"eng-nobody", "eng-user", "eng-breaker", controllers[0]} {
		few[user] = clients[user]
	}
	for engine, by := range map[string]string{"Webhook": byWebhook, "Policy": byPolicy, "Both": byPolicy} {
		e.Sections = fmt.Sprintf("protect: {engine: %s, systemIdentities: [%s]}\n", engine, systemIdentities[0])
		h := e.Start(engineRules + wayRules)
		for _, clone := range []string{"shared", "healed", "frozen"} {
			e.HasClone("eng-a", clone, map[string]string{"k": "v"})
		}
		e.Eventually(func(ctx context.Context) error {
			_, err := e.Admin.CoreV1().ConfigMaps("eng-a").Get(ctx, "binary", metav1.GetOptions{})
			return err
		})
		e.proven(h, "eng", "eng-updates", "eng-chosen", "eng-twice", "eng-healed", "eng-frozen", "eng-binary", "eng-going", "eng-emptied")
		e.registeredFor(engine)
		e.alone(clients["eng-nobody"], by, "eng-src", "eng-a")
		e.judged(engine, by, engineRequests(owner), clients)
		e.judged(engine, by, requestsInDeletion(), clients)
		e.judged(engine, by, wayRequests(dry()), few)
		refused := wayRequests(nil)
		maps.DeleteFunc(refused, func(_ string, r request) bool { return slices.Contains(r.may, "eng-nobody") })
		for sentence, attempt := range refused {
			e.HasClone("eng-a", "healed", map[string]string{"k": "v"}) // a replacement deletes it before it is refused
			e.judged(engine+", for real", by, map[string]request{sentence: attempt}, map[string]kubernetes.Interface{"eng-nobody": clients["eng-nobody"]})
		}
		e.warns("eng-src", "warned", "mind the gap")
		h.Stop()
	}
}

// attempted returns what came of the request by each of clients, all at once.
func (e *env) attempted(r request, clients map[string]kubernetes.Interface) map[string]error {
	var attempts sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[string]error{}
	for user, client := range clients {
		attempts.Go(func() {
			err := r.do(e.Context(), client)
			mu.Lock()
			defer mu.Unlock()
			outcomes[user] = err
		})
	}
	attempts.Wait()
	return outcomes
}

// judged checks that requests by everybody in clients are judged as they say.
func (e *env) judged(engine, by string, requests map[string]request, clients map[string]kubernetes.Interface) {
	e.Helper()
	for sentence, request := range requests {
		for user, err := range e.attempted(request, clients) {
			if slices.Contains(request.may, user) {
				require.NoError(e, err, "%s: %s by %s", engine, sentence, user)
			} else {
				require.NoError(e, lab.Refused(err), "%s: %s by %s", engine, sentence, user)
				require.Regexp(e, by, err.Error(), "%s: %s by %s", engine, sentence, user)
			}
		}
	}
}
