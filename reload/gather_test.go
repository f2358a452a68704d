package reload

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/gather"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func ruleFor(t *testing.T, name, source string, labels map[string]string) spec.Rule {
	t.Helper()
	config := spec.Config{Action: spec.Auto, Workloads: spec.Workloads{Selector: &metav1.LabelSelector{MatchLabels: labels}}}
	rule, err := spec.Compile(rules.Base{
		Name: name, Source: rules.Source{Kind: object.Secret, Namespace: "platform", Name: source},
	}, config)
	require.NoError(t, err)
	return rule
}

func TestWhatIsGoverned(t *testing.T) {
	stranger := cloneOf("1")
	stranger.Name = "stranger"
	stranger.Annotations[mark.Rule] = "no-such-rule"
	unmarked := cloneOf("1")
	unmarked.Name, unmarked.Annotations = "unmarked", nil
	source := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "base"}, Data: map[string][]byte{"k": []byte("v")}}
	f := newFixture(t, cloneOf("1"), stranger, unmarked, source, ownSecret("taken", "1"))
	stop := f.lead()
	defer stop()
	require.Eventually(t, func() bool { return len(f.caches.Pending()) == 0 }, soon, 10*time.Millisecond)
	hasher, err := f.key.Hasher()
	require.NoError(t, err)
	set := rules.NewSet(
		ruleFor(t, "gold", "base", map[string]string{"tier": "gold"}),
		ruleFor(t, "base", "base", map[string]string{"app": "web"}),
		ruleFor(t, "gone", "gone", nil).ClonedAs("to-be", rules.Matcher{}),
		ruleFor(t, "taken", "taken", nil).ClonedAs("", rules.Matcher{}),
		ruleFor(t, "unread", "base", nil),
	)
	tests := map[string]struct {
		namespace, name string
		labels          map[string]string
		rule            string
		exists          bool
	}{
		"a clone, by the rule it belongs to":              {"team", "base", map[string]string{"app": "web", "tier": "gold"}, "base", true},
		"a clone, for a workload that is not selected":    {"team", "base", map[string]string{"tier": "gold"}, "", false},
		"a clone of no known rule":                        {"team", "stranger", map[string]string{"app": "web"}, "", false},
		"a clone whose marks are lost":                    {"team", "unmarked", map[string]string{"app": "web"}, "", false},
		"a clone that is not there yet, by its name":      {"team", "to-be", nil, "gone", false},
		"not by the name of its source":                   {"team", "gone", nil, "", false},
		"not what somebody else has in its place":         {"team", "taken", nil, "", false},
		"an object of no rule":                            {"team", "other", map[string]string{"app": "web"}, "", false},
		"a source, by the first rule that selects":        {"platform", "base", map[string]string{"app": "web"}, "base", true},
		"a source, by the very first rule":                {"platform", "base", map[string]string{"app": "web", "tier": "gold"}, "gold", true},
		"a source that does not exist":                    {"platform", "gone", nil, "gone", false},
		"a source, for a workload that no selector names": {"platform", "base", map[string]string{"app": "db"}, "unread", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := gather.Gatherer{Caches: f.caches, Rules: set, Hasher: hasher}
			reference := refs.Reference{Kind: object.Secret, Name: test.name, Mode: refs.EnvFrom}
			c := g.Input(test.namespace, reference, optin.Preferences{Labels: test.labels})
			require.Equal(t, test.rule, c.Rule)
			require.Equal(t, test.exists, c.Exists)
			require.Equal(t, test.exists, len(c.Digests) > 0)
			require.False(t, g.Reading)
		})
	}
	t.Run("an object is absent if no cache has it, under any rule", func(t *testing.T) {
		g := gather.Gatherer{Caches: f.caches, Rules: set, Hasher: hasher}
		for name, absent := range map[string]bool{"base": false, "stranger": false, "unmarked": false, "other": true} {
			reference := refs.Reference{Kind: object.Secret, Name: name, Mode: refs.EnvFrom}
			require.Equal(t, absent, g.Input("team", reference, optin.Preferences{}).Absent, name)
		}
	})
	t.Run("a source whose cache is not full counts as unknown", func(t *testing.T) {
		elsewhere := rules.NewSet(spec.Rule{Base: rules.Base{Name: "r", Source: rules.Source{Kind: object.Secret, Namespace: "untracked", Name: "s"}}})
		g := gather.Gatherer{Caches: f.caches, Rules: elsewhere, Hasher: hasher}
		c := g.Input("untracked", refs.Reference{Kind: object.Secret, Name: "s", Mode: refs.EnvFrom}, optin.Preferences{})
		require.False(t, c.Exists)
		require.True(t, g.Reading)
	})
}

func TestAClonedSourceIsComingWhereItIsCloned(t *testing.T) {
	source := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "base"}}
	f := newFixture(t, source, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	stop := f.lead()
	defer stop()
	require.Eventually(t, func() bool { return len(f.caches.Pending()) == 0 }, soon, 10*time.Millisecond)
	to, err := rules.Namespaces{Include: []string{"team"}}.Compile()
	require.NoError(t, err)
	g := gather.Gatherer{Caches: f.caches, Rules: rules.NewSet(
		ruleFor(t, "base", "base", nil).ClonedAs("clone", to), ruleFor(t, "gone", "gone", nil).ClonedAs("clone", to), ruleFor(t, "uncloned", "base", nil),
	)}
	for sentence, test := range map[string]struct {
		rule, namespace string
		want            bool
	}{
		"where the rule clones to":     {"base", "team", true},
		"not where it does not":        {"base", "other", false},
		"not without the source":       {"gone", "team", false},
		"not without clones":           {"uncloned", "team", false},
		"not what no rule is about":    {"", "team", false},
		"not in a namespace that went": {"base", "gone", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			ref := object.Ref{Kind: object.Secret, Namespace: test.namespace, Name: "clone"}
			require.Equal(t, test.want, g.IsClonePending(decide.Input{Rule: test.rule, Object: ref}))
		})
	}
}

// consumersAmong are full caches of objects.
func consumersAmong(t *testing.T, objects ...runtime.Object) *gather.Consumers {
	t.Helper()
	clients := &kube.Clients{Typed: fake.NewClientset(objects...)}
	var caches informers.Caches
	caches.Sources = newFixture(t).caches.Sources
	consumers, err := gather.NewConsumers(clients, &caches, informers.Always, gather.CustomKinds(func() []kinds.WorkloadKind { return nil }, rules.NewLive(rules.NewSet[spec.Rule]()), workload.ActedOn), nil, workload.ActedOn, zaptest.NewLogger(t))
	require.NoError(t, err)
	caches.Start(t.Context())
	require.Eventually(t, func() bool { return len(caches.Pending()) == 0 }, soon, 10*time.Millisecond)
	return consumers
}

func TestPodFollowsTheWishesOfItsOwner(t *testing.T) {
	deployment := reloadtest.Web()
	deployment.Labels = map[string]string{"app": "web"}
	deployment.Annotations = map[string]string{mark.Reload: "Off"}
	nightly := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "nightly", Annotations: map[string]string{mark.Reload: "Off"}}}
	nightly.Spec.JobTemplate.Spec.Template = deployment.Spec.Template
	consumers := consumersAmong(t, deployment, nightly)
	pod := reloadtest.Pod(func(p *workload.Pod) {
		p.Namespace, p.OwnerKind, p.OwnerName = "team", kinds.KindDeployment, "web"
		p.Labels = map[string]string{"app": "pod"}
	})
	require.Equal(t, optin.Preferences{Labels: map[string]string{"app": "web"}, How: spec.None}, consumers.PreferencesForPod(pod, spec.Settings{}))
	pod.OwnerKind, pod.OwnerName = kinds.KindCronJob, "nightly"
	require.Equal(t, optin.Preferences{How: spec.None}, consumers.PreferencesForPod(pod, spec.Settings{}))
	pod.OwnerName = "unknown"
	require.Equal(t, optin.Preferences{Labels: map[string]string{"app": "pod"}}, consumers.PreferencesForPod(pod, spec.Settings{}))
	pod.OwnerKind = ""
	require.Equal(t, optin.Preferences{Labels: map[string]string{"app": "pod"}}, consumers.PreferencesForPod(pod, spec.Settings{}))
}

func TestPatternsThatNobodyHeedsFindNobody(t *testing.T) {
	deployment := reloadtest.Web()
	deployment.Annotations = map[string]string{reloadtest.SecretNames: "ow."}
	consumers := consumersAmong(t, deployment)
	own := object.Ref{Kind: object.Secret, Namespace: "team", Name: "own"}
	require.Empty(t, consumers.WorkloadsUsing(own, spec.Settings{}))
	require.Len(t, consumers.WorkloadsUsing(own, spec.Settings{Compatibility: []spec.Tool{spec.Reloader}}), 1)
}

func TestPatternsMakeReferencesOfSoMany(t *testing.T) {
	objects := []runtime.Object{cloneOf("1")}
	for i := range mark.MaxListed + 1 {
		objects = append(objects, ownSecret(fmt.Sprintf("own-%03d", i), "1"))
	}
	f := newFixture(t, objects...)
	stop := f.lead()
	defer stop()
	require.Eventually(t, func() bool { return len(f.caches.Pending()) == 0 }, soon, 10*time.Millisecond)
	g := gather.Gatherer{Caches: f.caches}
	matching := func(patterns string) optin.Preferences {
		of, faults := optin.ReadPreferences(together(reloadtest.Notes{reloadtest.SecretNames: patterns}))
		require.Empty(t, faults)
		return of
	}
	for patterns, want := range map[string]int{"own-00.": 10, "own-00.,own-.*5": 19, "ba.*,none.": 1, "own-.*": mark.MaxListed} {
		require.Len(t, g.Listed("team", matching(patterns)), want, patterns)
		require.Empty(t, g.Listed("elsewhere", matching(patterns)))
	}
	require.Empty(t, g.TooMany("team", matching("own-00.")))
	faults := g.TooMany("team", matching(".*"))
	require.Len(t, faults, 1)
	require.Contains(t, faults[0].Problem, "matches 102 objects, of which only the first 100")
}
