package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/harness"
)

func TestSourcesBySelectorFollowTheirLabel(t *testing.T) {
	e := newEnv(t)
	e.namespace("label-src")
	e.namespace("label-a")
	data := map[string]string{"k": "v"}
	share := func(name string, labels map[string]string) {
		secret := harness.Secret("label-src", name, data)
		secret.Labels = labels
		_, err := e.admin.CoreV1().Secrets("label-src").Create(t.Context(), secret, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	share("first", map[string]string{"share": "yes"})
	share("plain", nil)
	h := e.start(`
- name: label
  source: {kind: Secret, namespace: label-src, selector: {matchLabels: {share: "yes"}}}
  sync: {namespaces: {include: [label-a]}, onSourceDeleted: Delete}
`)
	e.hasClone("label-a", "first", data)
	e.settled(h)
	require.Nil(t, e.get("label-a", "plain"), "what lacks the label is no source")

	share("late", map[string]string{"share": "yes"})
	e.hasClone("label-a", "late", data)
	e.edit("label-src", "plain", func(s *corev1.Secret) { s.Labels = map[string]string{"share": "yes"} })
	e.hasClone("label-a", "plain", data)
	e.edit("label-src", "first", func(s *corev1.Secret) { s.Data["k"] = []byte("v2") })
	e.hasClone("label-a", "first", map[string]string{"k": "v2"})

	e.edit("label-src", "first", func(s *corev1.Secret) { delete(s.Labels, "share") })
	e.hasNone("label-a", "first")
	require.NoError(t, e.admin.CoreV1().Secrets("label-src").Delete(t.Context(), "late", metav1.DeleteOptions{}))
	e.hasNone("label-a", "late")
	e.hasClone("label-a", "plain", data)
}

func TestTheFirstRuleInTheFileWinsAPlace(t *testing.T) {
	e := newEnv(t)
	e.namespace("place-src")
	e.namespace("place-a")
	e.secret("place-src", "one", map[string]string{"k": "one"})
	e.secret("place-src", "two", map[string]string{"k": "two"})
	rule := func(source string) string {
		return fmt.Sprintf(`
- name: place-%s
  source: {kind: Secret, namespace: place-src, name: %s}
  sync: {namespaces: {include: [place-a]}, target: {name: shared}}
`, source, source)
	}
	h := e.start(rule("one") + rule("two"))
	e.hasClone("place-a", "shared", map[string]string{"k": "one"})
	note := e.hasEvent("place-a", "shared", "OtherRule")
	require.Contains(t, note, `rule "place-two" wants to clone here, but rule "place-one" comes first`)
	e.hasMetric(h, 1, "headwater_sync_clones", map[string]string{"rule": "place-two", "state": "conflict", "reason": "OtherRule"})
	e.settled(h)

	mark := e.cluster.Mark()
	e.edit("place-src", "two", func(s *corev1.Secret) { s.Data["k"] = []byte("two again") })
	e.holds(settle, e.noWrites(mark))

	e.configFile(rule("two") + rule("one"))
	e.hasClone("place-a", "shared", map[string]string{"k": "two again"})
	e.configFile(rule("one"))
	e.hasClone("place-a", "shared", map[string]string{"k": "one"})
}

func TestOneSourceMayBeInSeveralRules(t *testing.T) {
	e := newEnv(t)
	e.namespace("several-src")
	e.namespace("several-a")
	e.secret("several-src", "shared", map[string]string{"tls.crt": "c", "tls.key": "k"})
	e.start(`
- name: several-all
  source: {kind: Secret, namespace: several-src, name: shared}
  sync: {namespaces: {include: [several-a]}}
- name: several-public
  source: {kind: Secret, namespace: several-src, name: shared}
  sync: {namespaces: {include: [several-a]}, target: {name: public, keys: [{from: tls.crt, to: ca.pem}]}}
`)
	e.hasClone("several-a", "shared", map[string]string{"tls.crt": "c", "tls.key": "k"})
	e.hasClone("several-a", "public", map[string]string{"ca.pem": "c"})
	e.edit("several-src", "shared", func(s *corev1.Secret) { s.Data["tls.crt"] = []byte("c2") })
	e.hasClone("several-a", "shared", map[string]string{"tls.crt": "c2", "tls.key": "k"})
	e.hasClone("several-a", "public", map[string]string{"ca.pem": "c2"})
}

func TestWhatMustNotLeaveItsNamespaceIsRefused(t *testing.T) {
	e := newEnv(t)
	e.namespace("refuse-src")
	e.namespace("refuse-a")
	create := func(namespace, name string, change func(*corev1.Secret)) {
		secret := harness.Secret(namespace, name, map[string]string{"k": "v"})
		change(secret)
		_, err := e.admin.CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{})
		require.NoError(t, err)
		t.Cleanup(func() {
			_ = e.admin.CoreV1().Secrets(namespace).Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
		})
	}
	create("refuse-src", "release", func(s *corev1.Secret) { s.Type = "helm.sh/release.v1" })
	create("refuse-src", "bootstrap", func(s *corev1.Secret) { s.Type = "bootstrap.kubernetes.io/token" })
	create("refuse-src", "large", func(s *corev1.Secret) {
		s.Annotations = map[string]string{"example.org/most": strings.Repeat("x", 200<<10)}
	})
	create(metav1.NamespaceSystem, "refuse-system", func(*corev1.Secret) {})
	create(metav1.NamespaceSystem, "refuse-allowed", func(*corev1.Secret) {})
	rule := func(namespace, name, source, target string) string {
		return fmt.Sprintf(`
- name: %s
  source: {kind: Secret, namespace: %s, name: %s%s}
  sync: {namespaces: {include: [refuse-a]}%s}
`, name, namespace, name, source, target)
	}
	h := e.start(rule("refuse-src", "release", "", "") + rule("refuse-src", "bootstrap", "", "") +
		rule("refuse-src", "large", "", `, target: {copyAnnotations: ["*"], annotations: {more: "`+strings.Repeat("y", 100<<10)+`"}}`) +
		rule(metav1.NamespaceSystem, "refuse-system", "", "") +
		rule(metav1.NamespaceSystem, "refuse-allowed", ", allowSystemNamespace: true", ""))
	for _, refused := range []struct{ namespace, name, reason, note string }{
		{"refuse-src", "release", "ForbiddenType", "Helm"},
		{"refuse-src", "bootstrap", "ForbiddenType", "bootstrap token"},
		{"refuse-src", "large", "TooLarge", "bytes of annotations"},
		{metav1.NamespaceSystem, "refuse-system", "SystemNamespace", "allowSystemNamespace: true"},
	} {
		require.Contains(t, e.hasEvent(refused.namespace, refused.name, refused.reason), refused.note)
		e.hasMetric(h, 1, "headwater_sync_clones", map[string]string{"rule": refused.name, "state": "refused", "reason": refused.reason})
		require.Nil(t, e.get("refuse-a", refused.name))
	}
	e.hasClone("refuse-a", "refuse-allowed", map[string]string{"k": "v"})
}

func TestACloneHasTheMetadataOfItsRuleAndKeepsThatOfOthers(t *testing.T) {
	e := newEnv(t)
	e.namespace("meta-src")
	e.namespace("meta-a")
	source := harness.Secret("meta-src", "shared", map[string]string{"k": "v"})
	source.Labels = map[string]string{"team": "platform", "app.kubernetes.io/instance": "argo"}
	source.Annotations = map[string]string{"example.org/doc": "wiki", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
	source.Finalizers = []string{"example.org/hold"}
	_, err := e.admin.CoreV1().Secrets("meta-src").Create(t.Context(), source, metav1.CreateOptions{})
	require.NoError(t, err)
	defer e.edit("meta-src", "shared", func(s *corev1.Secret) { s.Finalizers = nil })
	rule := func(target string) string {
		return fmt.Sprintf(`
- name: meta
  source: {kind: Secret, namespace: meta-src, name: shared}
  sync: {namespaces: {include: [meta-a]}, target: {%s}}
`, target)
	}
	e.start(rule(`copyLabels: ["*"], copyAnnotations: ["*"], labels: {env: prod}, annotations: {note: added}`))
	has := func(labels, annotations map[string]string) {
		t.Helper()
		e.eventually(func(context.Context) error {
			clone := e.get("meta-a", "shared")
			if clone == nil {
				return fmt.Errorf("there is no clone")
			}
			for key, want := range map[string][2]map[string]string{"labels": {labels, clone.Labels}, "annotations": {annotations, clone.Annotations}} {
				if fmt.Sprint(want[0]) != fmt.Sprint(withoutMarks(want[1])) {
					return fmt.Errorf("%s are %v, want %v", key, want[1], want[0])
				}
			}
			if len(clone.Finalizers)+len(clone.OwnerReferences) > 0 {
				return fmt.Errorf("the clone has finalizers or owners")
			}
			return nil
		})
	}
	has(map[string]string{"team": "platform", "env": "prod"}, map[string]string{"example.org/doc": "wiki", "note": "added"})
	e.edit("meta-a", "shared", func(s *corev1.Secret) { s.Labels["theirs"] = "1"; s.Labels["env"] = "dev" })
	has(map[string]string{"team": "platform", "env": "prod", "theirs": "1"}, map[string]string{"example.org/doc": "wiki", "note": "added"})
	e.edit("meta-src", "shared", func(s *corev1.Secret) { delete(s.Labels, "team") })
	has(map[string]string{"env": "prod", "theirs": "1"}, map[string]string{"example.org/doc": "wiki", "note": "added"})
	e.configFile(rule(`copyAnnotations: ["example.org/*"]`))
	has(map[string]string{"theirs": "1"}, map[string]string{"example.org/doc": "wiki"})
}

func withoutMarks(m map[string]string) map[string]string {
	rest := map[string]string{}
	for key, value := range m {
		if !strings.HasPrefix(key, mark.Domain) {
			rest[key] = value
		}
	}
	return rest
}
