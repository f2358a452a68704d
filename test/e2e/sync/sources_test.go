package sync

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/test/lab"
)

func TestSourcesBySelectorFollowTheirLabel(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("label-src", "label-a")
	data := map[string]string{"k": "v"}
	share := func(name string, labels map[string]string) {
		secret := lab.Secret("label-src", name, data)
		secret.Labels = labels
		e.Create("label-src", secret)
	}
	share("first", map[string]string{"share": "yes"})
	share("plain", nil)
	h := e.Start(`
- name: label
  source: {kind: Secret, namespace: label-src, selector: {matchLabels: {share: "yes"}}}
  sync: {namespaces: {include: [label-a]}, onSourceDeleted: Delete}
`)
	e.HasClone("label-a", "first", data)
	e.Settled(h)
	require.Nil(t, e.Get("label-a", "plain"), "what lacks the label is no source")

	share("late", map[string]string{"share": "yes"})
	e.HasClone("label-a", "late", data)
	e.Edit("label-src", "plain", func(s *corev1.Secret) { s.Labels = map[string]string{"share": "yes"} })
	e.HasClone("label-a", "plain", data)
	e.Edit("label-src", "first", func(s *corev1.Secret) { s.Data["k"] = []byte("v2") })
	e.HasClone("label-a", "first", map[string]string{"k": "v2"})

	e.Edit("label-src", "first", func(s *corev1.Secret) { delete(s.Labels, "share") })
	e.HasNone("label-a", "first")
	require.NoError(t, e.Admin.CoreV1().Secrets("label-src").Delete(t.Context(), "late", metav1.DeleteOptions{}))
	e.HasNone("label-a", "late")
	e.HasClone("label-a", "plain", data)
}

func TestTheFirstRuleInTheFileWinsAPlace(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("place-src", "place-a")
	e.Secret("place-src", "one", map[string]string{"k": "one"})
	e.Secret("place-src", "two", map[string]string{"k": "two"})
	rule := func(source string) string {
		return fmt.Sprintf(`
- name: place-%s
  source: {kind: Secret, namespace: place-src, name: %s}
  sync: {namespaces: {include: [place-a]}, target: {name: shared}}
`, source, source)
	}
	h := e.Start(rule("one") + rule("two"))
	e.HasClone("place-a", "shared", map[string]string{"k": "one"})
	note := e.HasEvent("place-a", "shared", "OtherRule")
	require.Contains(t, note, `rule "place-two" wants to clone here, but rule "place-one" comes first`)
	e.HasMetric(h, 1, "headwater_sync_clones", map[string]string{"rule": "place-two", "state": "conflict", "reason": "OtherRule"})
	e.Settled(h)

	mark := e.Cluster.Mark()
	e.Edit("place-src", "two", func(s *corev1.Secret) { s.Data["k"] = []byte("two again") })
	e.Stays(e.NoWrites(mark))

	e.ConfigFile(rule("two") + rule("one"))
	e.HasClone("place-a", "shared", map[string]string{"k": "two again"})
	e.ConfigFile(rule("one"))
	e.HasClone("place-a", "shared", map[string]string{"k": "one"})
}

func TestOneSourceMayBeInSeveralRules(t *testing.T) {
	e := newEnv(t)
	e.StageOf("several", map[string]string{"tls.crt": "c", "tls.key": "k"})
	e.Start(`
- name: several-all
  source: {kind: Secret, namespace: several-src, name: shared}
  sync: {namespaces: {include: [several-a]}}
- name: several-public
  source: {kind: Secret, namespace: several-src, name: shared}
  sync: {namespaces: {include: [several-a]}, target: {name: public, keys: [{from: tls.crt, to: ca.pem}]}}
`)
	e.HasClone("several-a", "shared", map[string]string{"tls.crt": "c", "tls.key": "k"})
	e.HasClone("several-a", "public", map[string]string{"ca.pem": "c"})
	e.Edit("several-src", "shared", func(s *corev1.Secret) { s.Data["tls.crt"] = []byte("c2") })
	e.HasClone("several-a", "shared", map[string]string{"tls.crt": "c2", "tls.key": "k"})
	e.HasClone("several-a", "public", map[string]string{"ca.pem": "c2"})
}

func TestWhatMustNotLeaveItsNamespaceIsRefused(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("refuse-src", "refuse-a")
	create := func(namespace, name string, change func(*corev1.Secret)) {
		secret := lab.Secret(namespace, name, map[string]string{"k": "v"})
		change(secret)
		e.Create(namespace, secret)
		t.Cleanup(func() {
			_ = e.Admin.CoreV1().Secrets(namespace).Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
		})
	}
	create("refuse-src", "release", func(s *corev1.Secret) { s.Type = "helm.sh/release.v1" })
	create("refuse-src", "bootstrap", func(s *corev1.Secret) { s.Type = "bootstrap.kubernetes.io/token" })
	create("refuse-src", "large", func(s *corev1.Secret) {
		s.Annotations = map[string]string{"example.org/most": strings.Repeat("x", 200<<10)}
	})
	create("refuse-src", "copied", func(s *corev1.Secret) {
		mark.Stamp(&s.ObjectMeta, mark.Clone{Rule: "r", Source: object.Ref{Kind: object.Secret, Namespace: "refuse-first", Name: "first"}})
	})
	create("refuse-src", "older", func(s *corev1.Secret) { // as a build wrote it that did not name the place
		mark.Stamp(&s.ObjectMeta, mark.Clone{Rule: "r", Source: object.Ref{Kind: object.Secret, Namespace: "refuse-first", Name: "first"}})
		delete(s.Annotations, mark.Target)
	})
	create(metav1.NamespaceSystem, "refuse-system", func(*corev1.Secret) {})
	create(lab.Namespace, "refuse-own", func(*corev1.Secret) {})
	create(metav1.NamespaceSystem, "refuse-allowed", func(*corev1.Secret) {})
	rule := func(namespace, name, source, target string) string {
		return fmt.Sprintf(`
- name: %s
  source: {kind: Secret, namespace: %s, name: %s%s}
  sync: {namespaces: {include: [refuse-a]}%s}
`, name, namespace, name, source, target)
	}
	h := e.Start(rule("refuse-src", "release", "", "") + rule("refuse-src", "bootstrap", "", "") + rule("refuse-src", "copied", "", "") + rule("refuse-src", "older", "", "") +
		rule("refuse-src", "large", "", `, target: {copyAnnotations: ["*"], annotations: {more: "`+strings.Repeat("y", 100<<10)+`"}}`) +
		rule(metav1.NamespaceSystem, "refuse-system", "", "") + rule(lab.Namespace, "refuse-own", "", "") +
		rule(metav1.NamespaceSystem, "refuse-allowed", ", allowSystemNamespace: true", ""))
	for _, refused := range []struct{ namespace, name, reason, note string }{
		{"refuse-src", "release", "ForbiddenType", "Helm"},
		{"refuse-src", "bootstrap", "ForbiddenType", "bootstrap token"},
		{"refuse-src", "copied", "SourceIsClone", "a clone, of Secret/refuse-first/first"},
		{"refuse-src", "older", "SourceIsClone", "a clone, of Secret/refuse-first/first"},
		{"refuse-src", "large", "TooLarge", "bytes of annotations"},
		{metav1.NamespaceSystem, "refuse-system", "SystemNamespace", "allowSystemNamespace: true"},
		{lab.Namespace, "refuse-own", "OwnNamespace", "move the source to another namespace"},
	} {
		require.Contains(t, e.HasEvent(refused.namespace, refused.name, refused.reason), refused.note)
		e.HasMetric(h, 1, "headwater_sync_clones", map[string]string{"rule": refused.name, "state": "refused", "reason": refused.reason})
		require.Nil(t, e.Get("refuse-a", refused.name))
	}
	e.HasClone("refuse-a", "refuse-allowed", map[string]string{"k": "v"})
}

func TestACloneHasTheMetadataOfItsRuleAndKeepsThatOfOthers(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("meta-src", "meta-a")
	source := lab.Secret("meta-src", "shared", map[string]string{"k": "v"})
	source.Labels = map[string]string{"team": "platform", "app.kubernetes.io/instance": "argo"}
	source.Annotations = map[string]string{"example.org/doc": "wiki", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
	source.Finalizers = []string{"example.org/hold"}
	e.Create("meta-src", source)
	defer e.Edit("meta-src", "shared", func(s *corev1.Secret) { s.Finalizers = nil })
	rule := func(target string) string {
		return fmt.Sprintf(`
- name: meta
  source: {kind: Secret, namespace: meta-src, name: shared}
  sync: {namespaces: {include: [meta-a]}, target: {%s}}
`, target)
	}
	e.Start(rule(`copyLabels: ["*"], copyAnnotations: ["*"], labels: {env: prod}, annotations: {note: added}`))
	has := func(labels, annotations map[string]string) {
		t.Helper()
		e.Eventually(func(context.Context) error {
			clone := e.Get("meta-a", "shared")
			if clone == nil {
				return fmt.Errorf("there is no clone")
			}
			for key, want := range map[string][2]map[string]string{"labels": {labels, clone.Labels}, "annotations": {annotations, clone.Annotations}} {
				if fmt.Sprint(want[0]) != fmt.Sprint(withoutMarks(want[1])) {
					return fmt.Errorf("%s are %v, want %v", key, want[1], want[0])
				}
			}
			return lab.ErrorIf(len(clone.Finalizers)+len(clone.OwnerReferences) > 0, "the clone has finalizers or owners")
		})
	}
	has(map[string]string{"team": "platform", "env": "prod"}, map[string]string{"example.org/doc": "wiki", "note": "added"})
	e.Edit("meta-a", "shared", func(s *corev1.Secret) { s.Labels["theirs"] = "1"; s.Labels["env"] = "dev" })
	has(map[string]string{"team": "platform", "env": "prod", "theirs": "1"}, map[string]string{"example.org/doc": "wiki", "note": "added"})
	e.Edit("meta-src", "shared", func(s *corev1.Secret) { delete(s.Labels, "team") })
	has(map[string]string{"env": "prod", "theirs": "1"}, map[string]string{"example.org/doc": "wiki", "note": "added"})
	e.ConfigFile(rule(`copyAnnotations: ["example.org/*"]`))
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
