package guard

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/protect/prove"
	"github.com/headwater-k8s/headwater/protect/spec"
	"github.com/headwater-k8s/headwater/test/lab"
)

// beyond is what a thief of Headwater's token tries that Headwater never does.
func beyond() map[string]attempt {
	const marking = `{"metadata":{"labels":{"headwater.dev/clone":"true"},"annotations":{"headwater.dev/rule":"limit"}}}`
	return map[string]attempt{
		"a token of another account":         secretOf("kube-system", "token", "kubernetes.io/service-account-token", false),
		"a token of another account, marked": secretOf("kube-system", "token", "kubernetes.io/service-account-token", true),
		"a token in any namespace, marked":   secretOf("limit-a", "token", "kubernetes.io/service-account-token", true),
		"a bootstrap token, marked":          secretOf("limit-a", "bootstrap", "bootstrap.kubernetes.io/token", true),
		"a Helm release, marked":             secretOf("limit-a", "release", "helm.sh/release.v1", true),
		"somebody's Helm release":            merge(core+"limit-a/secrets/release", `{"data":{"release":"Zm9yZ2Vk"}}`),
		"somebody's Helm release, deleted":   remove(core + "limit-a/secrets/release"),
		"an object without the mark":         secretOf("limit-a", "other", "Opaque", false),
		"somebody's Secret":                  merge(core+"limit-a/secrets/theirs", `{"data":{"k":"Zm9yZ2Vk"}}`),
		"somebody's Secret, marked":          merge(core+"limit-a/secrets/theirs", marking),
		"somebody's Secret, deleted":         remove(core + "limit-a/secrets/theirs"),
		"a copy of a clone, deleted":         remove(core + "limit-a/secrets/copy"),
		"an object of a deployer in its own": post(core+own+"/configmaps", `{metadata: {name: other}}`),
		"aws-auth, created with the mark":    post(core+"kube-system/configmaps", `{metadata: {name: aws-auth-2, `+limitMarks+`}}`),
		"aws-auth, created without":          post(core+"kube-system/configmaps", `{metadata: {name: aws-auth-2}}`),
		"aws-auth, marked":                   merge(core+"kube-system/configmaps/aws-auth", marking),
		"aws-auth, changed":                  merge(core+"kube-system/configmaps/aws-auth", `{"data":{"mapRoles":"x"}}`),
		"a container of a Deployment":        strategic(apps+"limit-a/deployments/web", `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"other"}]}}}}`),
		"the account of a Deployment":        strategic(apps+"limit-a/deployments/web", `{"spec":{"template":{"spec":{"serviceAccountName":"default"}}}}`),
		"the replicas of a Deployment":       strategic(apps+"limit-a/deployments/web", `{"spec":{"replicas":7}}`),
		"the labels of a Deployment":         strategic(apps+"limit-a/deployments/web", `{"metadata":{"labels":{"a":"b"}}}`),
		"the labels of its template":         strategic(apps+"limit-a/deployments/web", `{"spec":{"template":{"metadata":{"labels":{"more":"b"}}}}}`),
		"an annotation of somebody":          strategic(apps+"limit-a/deployments/web", `{"metadata":{"annotations":{"theirs":"b"}}}`),
		"an annotation of its template":      strategic(apps+"limit-a/deployments/web", `{"spec":{"template":{"metadata":{"annotations":{"vault.hashicorp.com/agent-inject":"true"}}}}}`),
		"an owner of a Deployment":           strategic(apps+"limit-a/deployments/web", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"y"}]}}`),
		"the schedule of a CronJob":          strategic(batch+"limit-a/cronjobs/nightly", `{"spec":{"schedule":"* * * * *"}}`),
		"the Job of a CronJob":               strategic(batch+"limit-a/cronjobs/nightly", `{"spec":{"jobTemplate":{"spec":{"parallelism":9}}}}`),
		"a container of a CronJob":           strategic(batch+"limit-a/cronjobs/nightly", `{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"other"}]}}}}}}`),
		"a label of a CronJob's template":    strategic(batch+"limit-a/cronjobs/nightly", `{"spec":{"jobTemplate":{"metadata":{"labels":{"a":"b"}}}}}`),
		"the image of a pod":                 strategic(core+"limit-a/pods/lone", `{"spec":{"containers":[{"name":"c","image":"other"}]}}`),
		"the label of a pod":                 strategic(core+"limit-a/pods/lone", `{"metadata":{"labels":{"app":"web"}}}`),
		"somebody's webhook":                 createWebhook("thief", "", "secrets"),
		// It would receive the tokens of everybody whose tokens are reviewed.
		"its own webhook, about token reviews":  createWebhook("headwater", "authentication.k8s.io", "tokenreviews"),
		"its own webhook, about other objects":  createWebhook("headwater", "", "pods"),
		"its own webhook, about subresources":   createWebhook("headwater", "", "*/*"),
		"its own webhook, about all API groups": createWebhook("headwater", "*", "secrets"),
	}
}

const limitMarks = `labels: {headwater.dev/clone: "true", headwater.dev/rule: limit}, annotations: {headwater.dev/rule: limit, headwater.dev/source: Secret/guard-src/shared}`

// secretOf creates a Secret of that type, with the marks of a clone if isMarked. A token is of an
// account that may do much.
func secretOf(namespace, name, secretType string, isMarked bool) attempt {
	meta := `annotations: {kubernetes.io/service-account.name: clusterrole-aggregation-controller}`
	if isMarked {
		meta = strings.Replace(limitMarks, "annotations: {", "annotations: {kubernetes.io/service-account.name: clusterrole-aggregation-controller, ", 1)
	}
	return post(core+namespace+"/secrets", fmt.Sprintf(`{metadata: {name: %s, %s}, type: %s}`, name, meta, secretType))
}

func createWebhook(name, group, resource string) attempt {
	return post("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", fmt.Sprintf(`{metadata: {name: %s}, webhooks: [{
  name: all.thief.example, sideEffects: None, failurePolicy: Ignore, admissionReviewVersions: [v1], clientConfig: {url: https://thief.example},
  rules: [{operations: ["*"], apiGroups: [%q], apiVersions: ["*"], resources: [%q]}]}]}`, name, group, resource))
}

// within is what Headwater does.
func within() map[string]attempt {
	return map[string]attempt{
		"a clone":                    secretOf("limit-a", "clone", "Opaque", true),
		"a clone's content":          merge(core+"limit-a/secrets/shared", `{"data":{"k":"bmV3"}}`),
		"the release of a clone":     merge(core+"limit-a/secrets/shared", `{"metadata":{"labels":{"headwater.dev/clone":null}}}`),
		"a clone, deleted":           remove(core + "limit-a/secrets/shared"),
		"a clone that lost its mark": merge(core+"limit-a/secrets/stripped", `{"metadata":{"labels":{"headwater.dev/clone":"true"}}}`),
		"a revision":                 post(core+own+"/configmaps", `{metadata: {name: headwater-revision-x-1, labels: {headwater.dev/revision: "1"}}}`),
		"a record":                   post(core+own+"/configmaps", `{metadata: {name: headwater-removals}}`),
		"requests about deliveries":  post(core+own+"/configmaps", `{metadata: {name: headwater-deliveries}}`),
		"its webhook":                createWebhook("headwater", "", "namespaces"),
		"a restart":                  strategic(apps+"limit-a/deployments/web", `{"metadata":{"annotations":{"headwater.dev/baseline":"b"}},"spec":{"template":{"metadata":{"annotations":{"headwater.dev/restarted-for":"b"}}}}}`),
		"a restart of a CronJob":     strategic(batch+"limit-a/cronjobs/nightly", `{"metadata":{"annotations":{"headwater.dev/baseline":"b"}},"spec":{"jobTemplate":{"spec":{"template":{"metadata":{"annotations":{"headwater.dev/restarted-for":"b"}}}}}}}`),
		"a refresh":                  strategic(core+"limit-a/pods/lone", `{"metadata":{"annotations":{"headwater.dev/refreshed-for":"b"}}}`),
	}
}

// Who has Headwater's token writes what Headwater writes, and no more.
func TestHeadwatersTokenWritesWhatHeadwaterWrites(t *testing.T) {
	e := newEnv(t)
	e.standing()
	e.mayPatch("limit-patch")
	headwater := e.ByToken(own, account)
	for _, what := range slices.Sorted(maps.Keys(beyond())) {
		require.NoError(t, refusedBy(spec.LimitName, beyond()[what](t.Context(), headwater)), what)
	}
	for _, what := range slices.Sorted(maps.Keys(within())) {
		if err := within()[what](t.Context(), headwater); !apierrors.IsAlreadyExists(err) { // of a test before, which is said after admission
			require.NoError(t, err, what)
		}
	}
	pretender := e.personAs("guard-editor", "edit", lab.ServiceAccount)
	for _, what := range slices.Sorted(maps.Keys(within())) {
		if what == "a clone's content" { // which they may write as themselves, unless a rule protects it
			continue
		}
		e.Eventually(func(ctx context.Context) error { // RBAC lets it a moment later
			err := within()[what](ctx, pretender)
			if refused := lab.Refused(err); refused != nil {
				return fmt.Errorf("impersonated: %s: %w", what, refused)
			}
			return nil
		})
	}
	e.unbind(spec.LimitName)
	for _, what := range slices.Sorted(maps.Keys(beyond())) {
		require.NoError(t, passes(beyond()[what](t.Context(), headwater)), "without the policy: %s", what)
	}
}

// The account that verifies the protection may only try.
func TestTheProberMayOnlyTry(t *testing.T) {
	e := newEnv(t)
	e.standing()
	const name = "system:serviceaccount:headwater-system:headwater-prober"
	config := e.Config("")
	config.BearerToken = e.Token(own, account)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{prove.ProverGroup}}
	prober, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	require.NoError(t, remove(core+"limit-a/secrets/theirs")(t.Context(), prober))
	// Who may impersonate the accounts of the namespace would read every Secret.
	e.namespacedEditor("limit-tenant")
	pretender := e.ByToken("default", "limit-tenant", name)
	for _, read := range []string{"theirs", "shared"} {
		err := merge(core+"limit-a/secrets/"+read, `{}`)(t.Context(), pretender)
		require.True(t, apierrors.IsForbidden(err), "%s: %v", read, err)
	}
	require.NoError(t, refusedBy(spec.LimitName, prober.CoreV1().Secrets("limit-a").Delete(t.Context(), "theirs", metav1.DeleteOptions{})))
}

// standing are the objects that the attempts are about.
func (e *env) standing() {
	e.Helper()
	e.Secret(e.Namespace("limit-a"), "theirs", map[string]string{"k": "v"})
	release := lab.Secret("limit-a", "release", map[string]string{"release": "x"})
	release.Type = "helm.sh/release.v1"
	stripped := lab.Secret("limit-a", "stripped", map[string]string{"k": "v"})
	clone := &corev1.Secret{ObjectMeta: marked("limit")}
	clone.Namespace, clone.Name = "limit-a", "shared"
	copied := &corev1.Secret{ObjectMeta: marked("limit")}
	copied.Namespace, copied.Name, copied.Annotations = "limit-a", "copy", mark.WithPlace(copied.Annotations, clone)
	for _, secret := range []*corev1.Secret{release, stripped, clone, copied} {
		_, err := e.Admin.CoreV1().Secrets("limit-a").Create(e.Context(), secret, metav1.CreateOptions{FieldManager: mark.FieldManager})
		require.NoError(e, err)
	}
	e.make(core+"kube-system/configmaps", `{metadata: {name: aws-auth}}`)
	e.Cleanup(func() {
		_ = e.Admin.CoreV1().ConfigMaps("kube-system").Delete(context.WithoutCancel(e.Context()), "aws-auth", metav1.DeleteOptions{})
	})
	pod := strings.Replace(restricted, "serviceAccountName: headwater, ", "", 1)
	e.make(apps+"limit-a/deployments", `{metadata: {name: web}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, `+pod+`}}}`)
	e.make(batch+"limit-a/cronjobs", `{metadata: {name: nightly}, spec: {schedule: 0 0 1 1 *, jobTemplate: {spec: {template: {`+strings.Replace(pod, "spec: {", "spec: {restartPolicy: Never, ", 1)+`}}}}}`)
	e.Eventually(func(ctx context.Context) error { // until the namespace has its account
		return send(ctx, e.Admin, http.MethodPost, core+"limit-a/pods", `{metadata: {name: lone}, `+pod+`}`, nil)
	})
}

// A limit that refuses too much stops Headwater's own writes alone: the Event names the
// policy, and deleting its binding ends it.
func TestDeletingTheBindingEndsALimitThatRefusesTooMuch(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("limit-src", "limit-over")
	data := map[string]string{"k": "v"}
	e.Secret("limit-src", "shared", data)
	e.Secret("limit-over", "shared", map[string]string{"k": "theirs"})
	rules := `
- name: over
  source: {kind: Secret, namespace: limit-src, name: shared}
  sync: {namespaces: {include: [limit-over]}, onConflict: Overwrite}
`
	options := e.Options(rules) // which the values of the chart do not know
	h := e.Launch(options)
	require.NoError(t, h.Ready(t.Context()))
	require.Contains(t, e.HasEvent("limit-over", "shared", "CloneFailed"), "Policy '"+spec.LimitName+"'")
	require.NoError(t, lab.SameData(e.Get("limit-over", "shared"), map[string]string{"k": "theirs"}))
	e.unbind(spec.LimitName)
	e.HasClone("limit-over", "shared", data)
}
