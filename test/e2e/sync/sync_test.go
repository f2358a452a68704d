package sync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

func TestClonesFollowNamesAndLabelsOfNamespaces(t *testing.T) {
	e := newEnv(t)
	e.Namespace("follow-src")
	for _, name := range []string{"follow-a", "follow-b", "follow-x"} {
		e.Namespace(name, "tier=gold")
	}
	e.Namespace("follow-plain")
	data := map[string]string{"k": "v"}
	e.Secret("follow-src", "shared", data)
	e.Start(`
- name: follow
  source: {kind: Secret, namespace: follow-src, name: shared}
  sync:
    namespaces:
      include: ["follow-*"]
      exclude: ["*-x"]
      selector: {matchLabels: {tier: gold}}
`)
	e.HasClone("follow-a", "shared", data)
	e.HasClone("follow-b", "shared", data)
	e.Stays(func(context.Context) error {
		for _, name := range []string{"follow-x", "follow-plain", "default"} {
			if e.Get(name, "shared") != nil {
				return fmt.Errorf("a clone in %s", name)
			}
		}
		return nil
	})
	relabel := func(name, tier string) {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"tier":%q}}}`, tier)
		_, err := e.Admin.CoreV1().Namespaces().Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
		require.NoError(t, err)
	}
	relabel("follow-plain", "gold")
	e.HasClone("follow-plain", "shared", data)
	relabel("follow-a", "silver")
	e.HasNone("follow-a", "shared")
	e.Namespace("follow-late", "tier=gold")
	e.HasClone("follow-late", "shared", data)
}

func TestEveryDriftIsHealed(t *testing.T) {
	e := newEnv(t)
	e.Namespace("drift-src")
	data := map[string]string{"user": "blog", "password": "right"}
	e.Secret("drift-src", "shared", data)
	h := e.Start(lab.OneRule("drift"))
	marked := func(namespace string) error {
		clone := e.Get(namespace, "shared")
		if err := lab.SameData(clone, data); err != nil {
			return err
		}
		if _, ours := mark.Of(clone); !ours || clone.Labels[mark.Rule] != "drift" {
			return fmt.Errorf("the clone lacks its marks: %v %v", clone.Labels, clone.Annotations)
		}
		return nil
	}
	const drifts = 10 // one namespace each, as repairs of one clone slow down
	namespaces := []string{e.Namespace("drift-own")}
	for i := range drifts {
		namespaces = append(namespaces, e.Namespace(fmt.Sprint("drift-", i)))
	}
	for _, namespace := range namespaces {
		e.HasClone(namespace, "shared", data)
	}
	e.Settled(h) // it knows what it has written
	drifting := namespaces[1:]
	healed := func(change func(namespace string)) {
		namespace := drifting[0]
		drifting = drifting[1:]
		change(namespace)
		e.Eventually(func(context.Context) error { return marked(namespace) })
	}
	for sentence, change := range map[string]func(*corev1.Secret){
		"a value is edited":                  func(s *corev1.Secret) { s.Data["password"] = []byte("wrong") },
		"a key is added":                     func(s *corev1.Secret) { s.Data["more"] = []byte("x") },
		"a key is removed":                   func(s *corev1.Secret) { delete(s.Data, "user") },
		"everything is removed":              func(s *corev1.Secret) { s.Data = nil },
		"the clone label is stripped":        func(s *corev1.Secret) { delete(s.Labels, mark.CloneLabel) },
		"the rule's label is stripped":       func(s *corev1.Secret) { delete(s.Labels, mark.Rule) },
		"another rule is named by its label": func(s *corev1.Secret) { s.Labels[mark.Rule] = "other" },
		"the annotations are stripped": func(s *corev1.Secret) {
			s.Annotations = nil
		},
		"label and value go together": func(s *corev1.Secret) {
			delete(s.Labels, mark.CloneLabel)
			s.Data["password"] = []byte("wrong")
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			healed(func(namespace string) { e.Edit(namespace, "shared", change) })
		})
	}
	t.Run("the clone is deleted", func(t *testing.T) {
		healed(func(namespace string) {
			require.NoError(t, e.Admin.CoreV1().Secrets(namespace).Delete(t.Context(), "shared", metav1.DeleteOptions{}))
		})
	})
	t.Run("a label of somebody else's stays", func(t *testing.T) {
		e.Edit("drift-own", "shared", func(s *corev1.Secret) { s.Labels["team"] = "a"; s.Data["password"] = []byte("wrong") })
		e.HasClone("drift-own", "shared", data)
		require.Equal(t, "a", e.Get("drift-own", "shared").Labels["team"])
	})
	t.Run("each was counted, and nothing else", func(t *testing.T) {
		e.Namespace("drift-new")
		e.HasClone("drift-new", "shared", data)
		e.Edit("drift-src", "shared", func(s *corev1.Secret) { s.Data["password"] = []byte("new") })
		for _, namespace := range append(namespaces, "drift-new") {
			e.HasClone(namespace, "shared", map[string]string{"user": "blog", "password": "new"})
		}
		e.Settled(h)
		for cause, want := range map[string]float64{"edited": 7, "unmarked": 3, "deleted": 1} {
			e.HasMetric(h, want, "headwater_sync_heals_total", map[string]string{"rule": "drift", "cause": cause})
		}
	})
}

// Invariant 4.
func TestOnlyWhatCarriesOurMarkIsOverwritten(t *testing.T) {
	e := newEnv(t)
	e.StageOf("foreign", map[string]string{"k": "ours"})
	theirs := e.Secret("foreign-a", "shared", map[string]string{"k": "theirs"})
	h := e.Start(lab.OneRule("foreign"))
	note := e.HasEvent("foreign-a", "shared", "Conflict")
	require.Contains(t, note, `rule "foreign"`)
	require.NotContains(t, note, "theirs")
	e.Eventually(func(ctx context.Context) error {
		refused, err := h.Metric(ctx, "headwater_sync_clones", map[string]string{"rule": "foreign", "state": "conflict", "reason": "Conflict"})
		return errors.Join(err, lab.ErrorIf(refused != 1, "metric says %v refused", refused))
	})
	require.Equal(t, theirs.ResourceVersion, e.Get("foreign-a", "shared").ResourceVersion, "a foreign object must not be touched")
	require.NoError(t, e.Admin.CoreV1().Secrets("foreign-a").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	e.HasClone("foreign-a", "shared", map[string]string{"k": "ours"})
}

func TestOnConflictTakesOverWhatTheRuleSays(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("adopt-src", "adopt-equal", "adopt-differs", "over-differs", "over-typed")
	data := map[string]string{"username": "u", "password": "p"}
	e.Secret("adopt-src", "shared", data)
	const applied = "kubectl.kubernetes.io/last-applied-configuration"
	for namespace, values := range map[string]map[string]string{"adopt-equal": data, "adopt-differs": {"username": "theirs"}, "over-differs": {"username": "theirs"}} {
		theirs := lab.Secret(namespace, "shared", values)
		theirs.Annotations = map[string]string{applied: `{"data":{"username":"dGhlaXJz"}}`, "team": "a"}
		e.Create(namespace, theirs)
	}
	equal := e.Get("adopt-equal", "shared")
	typed := lab.Secret("over-typed", "shared", data)
	typed.Type = corev1.SecretTypeBasicAuth
	e.Create("over-typed", typed)
	h := e.Start(`
- name: adopt
  source: {kind: Secret, namespace: adopt-src, name: shared}
  sync: {namespaces: {include: ["adopt-*"]}, onConflict: AdoptIfEqual}
- name: over
  source: {kind: Secret, namespace: adopt-src, name: shared}
  sync: {namespaces: {include: ["over-*"]}, onConflict: Overwrite}
`)
	e.Eventually(func(context.Context) error {
		for namespace, rule := range map[string]string{"adopt-equal": "adopt", "over-differs": "over", "over-typed": "over"} {
			clone := e.Get(namespace, "shared")
			if err := lab.SameData(clone, data); err != nil {
				return err
			}
			if marks, ours := mark.Of(clone); !ours || marks.Rule != rule || clone.Type != corev1.SecretTypeOpaque {
				return fmt.Errorf("the object in %s was not taken over", namespace)
			}
		}
		return nil
	})
	require.Equal(t, equal.UID, e.Get("adopt-equal", "shared").UID, "adopted in place")
	for _, namespace := range []string{"adopt-equal", "over-differs"} {
		taken := e.Get(namespace, "shared").Annotations
		require.Equal(t, "a", taken["team"])
		require.NotContains(t, taken, applied, "it has a value")
	}
	require.Contains(t, e.HasEvent("adopt-differs", "shared", "Conflict"), "differs from the source")
	require.NoError(t, lab.SameData(e.Get("adopt-differs", "shared"), map[string]string{"username": "theirs"}))
	e.Settled(h)
	e.Edit("adopt-src", "shared", func(s *corev1.Secret) { s.Data["password"] = []byte("p2") })
	for _, name := range []string{"adopt-equal", "over-differs", "over-typed"} {
		e.HasClone(name, "shared", map[string]string{"username": "u", "password": "p2"})
	}
}

// Invariant 3.
func TestOneFailingNamespaceNeverDelaysAnother(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("quota-src", "quota-full", "quota-open")
	e.NoSecrets("quota-full")
	data := map[string]string{"k": "v"}
	e.Secret("quota-src", "shared", data)
	h := e.Start(lab.OneRule("quota"))
	e.HasClone("quota-open", "shared", data)
	e.Eventually(func(ctx context.Context) error {
		failures, err := h.Metric(ctx, "headwater_sync_failures_total", map[string]string{"rule": "quota"})
		return errors.Join(err, lab.ErrorIf(failures < 2, "only %v attempts failed so far", failures))
	})
	e.Edit("quota-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("v2") })
	e.HasClone("quota-open", "shared", map[string]string{"k": "v2"})
	require.NoError(t, e.Admin.CoreV1().ResourceQuotas("quota-full").Delete(t.Context(), "none", metav1.DeleteOptions{}))
	e.HasClone("quota-full", "shared", map[string]string{"k": "v2"})
}

// Invariant 4.
func TestATerminatingNamespaceIsANormalOutcome(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("going-src", "going-a", "going-b")
	data := map[string]string{"k": "v"}
	e.Secret("going-src", "shared", data)
	h := e.Start(lab.OneRule("going"))
	e.HasClone("going-a", "shared", data)
	// A finalizer keeps the namespace terminating for as long as the test likes.
	e.Create("going-a", &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "holder", Finalizers: []string{"example.org/hold"}},
	})
	require.NoError(t, e.Admin.CoreV1().Namespaces().Delete(t.Context(), "going-a", metav1.DeleteOptions{}))
	e.HasNone("going-a", "shared")
	e.Edit("going-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("v2") })
	e.HasClone("going-b", "shared", map[string]string{"k": "v2"})
	failures, err := h.Metric(t.Context(), "headwater_sync_failures_total", map[string]string{"rule": "going"})
	require.NoError(t, err)
	require.Zero(t, failures)
	_, err = e.Admin.CoreV1().ConfigMaps("going-a").Patch(t.Context(), "holder", types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
}

func TestTypeImmutableAndBinaryDataAreKept(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("types-src", "types-a")
	secrets, configMaps := e.Admin.CoreV1().Secrets("types-src"), e.Admin.CoreV1().ConfigMaps("types-src")
	typed := lab.Secret("types-src", "typed", map[string]string{"username": "u", "password": "p"})
	typed.Type = corev1.SecretTypeBasicAuth
	_, err := secrets.Create(t.Context(), typed, metav1.CreateOptions{})
	require.NoError(t, err)
	immutable := true
	bundle := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "bundle"},
		Data:       map[string]string{"text": "t"}, BinaryData: map[string][]byte{"blob": {0, 0xff}}, Immutable: &immutable,
	}
	_, err = configMaps.Create(t.Context(), bundle, metav1.CreateOptions{})
	require.NoError(t, err)
	e.Start(`
- name: typed
  source: {kind: Secret, namespace: types-src, name: typed}
  sync: {namespaces: {include: [types-a]}}
- name: bundle
  source: {kind: ConfigMap, namespace: types-src, name: bundle}
  sync: {namespaces: {include: [types-a]}}
`)
	cloned := func(want *corev1.ConfigMap, secretType corev1.SecretType) func(context.Context) error {
		return func(ctx context.Context) error {
			got, err := e.Admin.CoreV1().ConfigMaps("types-a").Get(ctx, "bundle", metav1.GetOptions{})
			if err != nil {
				return err
			}
			if fmt.Sprint(got.Data, got.BinaryData, *got.Immutable) != fmt.Sprint(want.Data, want.BinaryData, *want.Immutable) {
				return fmt.Errorf("the clone holds %v %v", got.Data, got.BinaryData)
			}
			if secret := e.Get("types-a", "typed"); secret == nil || secret.Type != secretType {
				return fmt.Errorf("the clone of type %s is not there", secretType)
			}
			return nil
		}
	}
	e.Eventually(cloned(bundle, corev1.SecretTypeBasicAuth))

	// The API server allows neither change on a live object: the test recreates the
	// source, and Headwater must recreate the clones.
	require.NoError(t, configMaps.Delete(t.Context(), "bundle", metav1.DeleteOptions{}))
	bundle.Data["text"] = "t2"
	_, err = configMaps.Create(t.Context(), bundle, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, secrets.Delete(t.Context(), "typed", metav1.DeleteOptions{}))
	typed.Type = corev1.SecretTypeOpaque
	_, err = secrets.Create(t.Context(), typed, metav1.CreateOptions{})
	require.NoError(t, err)
	e.Eventually(cloned(bundle, corev1.SecretTypeOpaque))
}

// Invariant 5.
func TestAnEmptiedOrDeletedSourceLeavesItsClones(t *testing.T) {
	e := newEnv(t)
	data := map[string]string{"k": "v"}
	e.StageOf("empty", data)
	e.Start(lab.Rule("empty", "sync: {namespaces: {include: [empty-a]}}"))
	e.HasClone("empty-a", "shared", data)
	e.Edit("empty-src", "shared", func(s *corev1.Secret) { s.Data = nil })
	e.HasEvent("empty-src", "shared", "SourceEmptied")
	unharmed := func(context.Context) error { return lab.SameData(e.Get("empty-a", "shared"), data) }
	e.Stays(unharmed)
	require.NoError(t, e.Admin.CoreV1().Secrets("empty-src").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	e.Stays(unharmed)
	e.Secret("empty-src", "shared", map[string]string{"k": "v2"})
	e.HasClone("empty-a", "shared", map[string]string{"k": "v2"})
}

func TestOnSourceDeletedDeleteRemovesTheClones(t *testing.T) {
	e := newEnv(t)
	data := map[string]string{"k": "v"}
	e.StageOf("gone", data)
	e.Start(lab.Rule("gone", "sync: {namespaces: {include: [gone-a]}, onSourceDeleted: Delete}"))
	e.HasClone("gone-a", "shared", data)
	require.NoError(t, e.Admin.CoreV1().Secrets("gone-src").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	e.HasNone("gone-a", "shared")
}

// Invariant 2.
func TestNothingChangedMeansZeroWritesAfterARestart(t *testing.T) {
	e := newEnv(t)
	data := map[string]string{"k": "v"}
	e.StageOf("zero", data)
	rules := lab.Rule("zero", `sync: {namespaces: {include: ["zero-*"]}}`, "protect: {}", "reload: {}")
	h := e.Start(rules)
	e.HasClone("zero-a", "shared", data)
	e.HasEvent("zero-src", "shared", "ProtectionProven") // which comes after the record
	e.SettledFor(h, lab.Settle)
	h.Stop()
	mark := e.Cluster.Mark()
	h = e.Start(rules)
	require.NoError(t, h.Idle(t.Context()))
	e.Stays(e.NoWrites(mark))
}

// Invariant 1.
func TestADowntimeIsCaughtUpWith(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("down-src", "down-a", "down-b")
	e.Secret("down-src", "shared", map[string]string{"k": "v"})
	rules := lab.OneRule("down")
	h := e.Start(rules)
	e.HasClone("down-a", "shared", map[string]string{"k": "v"})
	e.HasClone("down-b", "shared", map[string]string{"k": "v"})
	h.Stop()
	e.Edit("down-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("v2") })
	require.NoError(t, e.Admin.CoreV1().Secrets("down-b").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	e.Namespace("down-c")
	e.Start(rules)
	for _, name := range []string{"down-a", "down-b", "down-c"} {
		e.HasClone(name, "shared", map[string]string{"k": "v2"})
	}
}

// Invariant 13.
func TestOneWritePerChangedClone(t *testing.T) {
	e := newEnv(t)
	e.Namespace("once-src")
	const clones = 20
	for i := range clones {
		e.Namespace(fmt.Sprintf("once-%02d", i))
	}
	e.Secret("once-src", "shared", map[string]string{"k": "v"})
	h := e.Start(lab.OneRule("once"))
	for i := range clones {
		e.HasClone(fmt.Sprintf("once-%02d", i), "shared", map[string]string{"k": "v"})
	}
	e.SettledFor(h, lab.Settle) // its records are written apart from clones
	mark := e.Cluster.Mark()
	e.Edit("once-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("v2") })
	for i := range clones {
		e.HasClone(fmt.Sprintf("once-%02d", i), "shared", map[string]string{"k": "v2"})
	}
	e.WritesOnly(mark, clones)
}

func TestANewNamespaceGoesAheadOfAFanOut(t *testing.T) {
	e := ownCluster(t)
	const clones = 300
	f := newFleet(e, "ahead", clones, "")
	o := e.Options(f.rules)
	o.Args = []string{"--workers=1", lab.Alone}
	proxy := e.Proxy(o)
	h := e.Launch(o)
	f.allHave("v")
	e.Settled(h)
	proxy.Slow(time.Second) // until Headwater has seen the new namespace, on any machine
	mark := e.Cluster.Mark()
	e.Edit("ahead-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("v2") })
	e.Eventually(func(context.Context) error { return lab.ErrorIf(len(e.Writes(mark)) == 0, "the fan-out has not begun") })
	came := time.Now()
	e.Namespace("ahead-new", "fleet=ahead")
	e.HasClone("ahead-new", "shared", map[string]string{"k": "v2"})
	proxy.Slow(0)
	f.allHave("v2")
	e.Eventually(func(context.Context) error {
		return lab.ErrorIf(len(e.Writes(mark)) <= clones, "the audit log lacks some of the writes")
	})
	left := slices.DeleteFunc(e.Writes(mark), func(r cluster.Request) bool { return r.Time.Before(came) })
	at := slices.IndexFunc(left, func(r cluster.Request) bool { return r.Verb == "create" && r.Namespace == "ahead-new" })
	require.GreaterOrEqual(t, at, 0)
	require.Less(t, at, len(left)/2, "it waited for most of what was left of the fan-out")
}
