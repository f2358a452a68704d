// Package gaps holds the end-to-end tests of what happens while Headwater cannot
// see it: it is cut off, or there is no API server.
package gaps

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// gap is what happens while Headwater cannot see it. Sources and namespaces are
// named after their fates; that of a clone comes of both.
type gap struct {
	*env

	prefix string
	before map[string]types.UID
	mark   cluster.Mark
}

var gapRules = `
- name: PREFIX-edited
  source: {kind: Secret, namespace: PREFIX-src, name: edited}
  sync: {namespaces: {selector: {matchLabels: {gap: PREFIX}}}}
- name: PREFIX-doomed
  source: {kind: Secret, namespace: PREFIX-src, name: doomed}
  sync: {namespaces: {selector: {matchLabels: {gap: PREFIX}}}, onSourceDeleted: Delete}
- name: PREFIX-still
  source: {kind: ConfigMap, namespace: PREFIX-src, name: still}
  sync: {namespaces: {selector: {matchLabels: {gap: PREFIX}}}, onSourceDeleted: Delete}
`

func newGap(e *env, prefix string) *gap {
	e.Helper()
	g := &gap{env: e, prefix: prefix}
	e.Namespace(g.in("src"))
	for _, name := range []string{"drift", "lost", "same", "taken", "unmatched", "gone"} {
		e.Namespace(g.in(name), "gap="+prefix)
	}
	e.Secret(g.in("src"), "edited", map[string]string{"k": "v1"})
	e.Secret(g.in("src"), "doomed", map[string]string{"k": "v1"})
	still := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "still"}, Data: map[string]string{"k": "v1"}}
	e.Create(g.in("src"), still)
	return g
}

func (g *gap) in(namespace string) string { return g.prefix + "-" + namespace }

// rules let every clone of a small fleet be removed at once.
func (g *gap) rules() string {
	return strings.ReplaceAll(gapRules, "PREFIX", g.prefix) + "\nsafety: {maxDeleteFraction: 1}\n"
}

// begins waits until every clone is there and nothing is left to do.
func (g *gap) begins(h *lab.Headwater) {
	g.Helper()
	want := map[string]string{}
	for _, namespace := range []string{"src", "drift", "lost", "same", "taken", "unmatched", "gone"} {
		for _, name := range []string{"edited", "doomed", "still"} {
			want[namespace+"/"+name] = "v1"
		}
	}
	g.hold(want)
	g.Settled(h)
	var err error
	_, g.before, err = g.look()
	require.NoError(g, err)
	g.mark = g.Cluster.Mark()
}

// passes is what happens during the gap.
func (g *gap) passes() {
	g.Helper()
	ctx, secrets, configMaps := g.Context(), g.Admin.CoreV1().Secrets, g.Admin.CoreV1().ConfigMaps
	g.Edit(g.in("src"), "edited", func(s *corev1.Secret) { s.Data["k"] = []byte("v2") })
	require.NoError(g, secrets(g.in("src")).Delete(ctx, "doomed", metav1.DeleteOptions{}))

	g.Edit(g.in("drift"), "edited", func(s *corev1.Secret) { s.Data["k"] = []byte("wrong") })
	_, err := configMaps(g.in("drift")).Patch(ctx, "still", types.MergePatchType, []byte(`{"data":{"k":"wrong"}}`), metav1.PatchOptions{})
	require.NoError(g, err)

	require.NoError(g, secrets(g.in("lost")).Delete(ctx, "edited", metav1.DeleteOptions{}))
	require.NoError(g, secrets(g.in("lost")).Delete(ctx, "doomed", metav1.DeleteOptions{}))
	require.NoError(g, configMaps(g.in("lost")).Delete(ctx, "still", metav1.DeleteOptions{}))

	require.NoError(g, secrets(g.in("taken")).Delete(ctx, "doomed", metav1.DeleteOptions{}))
	g.before["taken/doomed"] = g.Secret(g.in("taken"), "doomed", map[string]string{"k": "theirs"}).UID

	namespaces := g.Admin.CoreV1().Namespaces()
	_, err = namespaces.Patch(ctx, g.in("unmatched"), types.MergePatchType, []byte(`{"metadata":{"labels":{"gap":null}}}`), metav1.PatchOptions{})
	require.NoError(g, err)
	g.Namespace(g.in("late"), "gap="+g.prefix)
	require.NoError(g, namespaces.Delete(ctx, g.in("gone"), metav1.DeleteOptions{}))
	g.Eventually(func(ctx context.Context) error {
		_, err := namespaces.Get(ctx, g.in("gone"), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the namespace is still there (%w)", err)
	})
}

// closes waits for what must be the outcome, and checks that it took no write
// too many and that what could stay in place did.
func (g *gap) closes(h *lab.Headwater) {
	g.Helper()
	g.hold(map[string]string{
		"src/edited": "v2", "src/still": "v1",
		"drift/edited": "v2", "drift/still": "v1",
		"lost/edited": "v2", "lost/still": "v1",
		"same/edited": "v2", "same/still": "v1",
		"taken/edited": "v2", "taken/still": "v1", "taken/doomed": "theirs",
		"late/edited": "v2", "late/still": "v1",
	})
	g.Settled(h)
	require.ElementsMatch(g, []string{
		"update same/edited", "delete same/doomed", "update taken/edited",
		"update drift/still", "create lost/still", "create late/still", "delete unmatched/still",
	}, g.done())
	_, after, err := g.look()
	require.NoError(g, err)
	for name, uid := range after {
		if before, was := g.before[name]; was && !strings.HasPrefix(name, "lost/") {
			require.Equal(g, before, uid, "%s was recreated", name)
		}
	}
}

// done are the writes that the API server accepted: those from a cache that was
// behind it refuses. Left out are clones whose source and namespace both changed:
// one of these caches may be behind the other, and its event then puts right what
// was written meanwhile.
func (g *gap) done() []string {
	g.Helper()
	var done []string
	for _, write := range g.Writes(g.mark) {
		namespace := strings.TrimPrefix(write.Namespace, g.prefix+"-")
		if write.Code < 300 && (write.Name == "still" || namespace == "same" || namespace == "taken") {
			done = append(done, write.Verb+" "+namespace+"/"+write.Name)
		}
	}
	return done
}

// hold waits until exactly these objects are there, with these values.
func (g *gap) hold(want map[string]string) {
	g.Helper()
	g.Eventually(func(context.Context) error {
		got, _, err := g.look()
		return errors.Join(err, lab.ErrorIf(!maps.Equal(got, want), "there are %v, want %v", got, want))
	})
}

// look reads every source and clone as namespace/name.
func (g *gap) look() (values map[string]string, uids map[string]types.UID, err error) {
	values, uids = map[string]string{}, map[string]types.UID{}
	add := func(meta metav1.ObjectMeta, value string) {
		namespace, ours := strings.CutPrefix(meta.Namespace, g.prefix+"-")
		if ours && slices.Contains([]string{"edited", "doomed", "still"}, meta.Name) {
			values[namespace+"/"+meta.Name], uids[namespace+"/"+meta.Name] = value, meta.UID
		}
	}
	secrets, err := g.Admin.CoreV1().Secrets(metav1.NamespaceAll).List(g.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	for _, secret := range secrets.Items {
		add(secret.ObjectMeta, string(secret.Data["k"]))
	}
	configMaps, err := g.Admin.CoreV1().ConfigMaps(metav1.NamespaceAll).List(g.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	for _, configMap := range configMaps.Items {
		add(configMap.ObjectMeta, configMap.Data["k"])
	}
	return values, uids, nil
}
