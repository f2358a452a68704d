package sync

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// situation is one way in which something happens to something. MX stands for
// the prefix that its rule and its namespaces have to themselves.
type situation struct {
	// rules are in force before, by default standardRule; then, afterwards, by
	// default the same.
	rules, then string
	// given adds to what there is: namespaces MX-src, MX-a and MX-b, and,
	// unless sourceless, the source MX-src/shared.
	given      func(scene)
	sourceless bool
	act        func(scene)
	// before and after are all Secrets of all namespaces but MX-src, as
	// scene.clones shows them; by default a standard clone in both, and what
	// was before.
	before, after map[string]string
	// wrote is all that Headwater writes because of it.
	wrote []string
}

const (
	noRule       = "\n"
	standardRule = `
- name: MX
  source: {kind: Secret, namespace: MX-src, name: shared}
  sync: {namespaces: {include: ["MX-?"]}}
`
	cloned = "k=v by MX"
)

// ruleWith is standardRule with more in its sync section.
func ruleWith(more string) string {
	return strings.Replace(standardRule, "}}\n", "}, "+more+"}\n", 1)
}

// selecting is rule with its sources selected by label.
func selecting(rule string) string {
	return strings.Replace(rule, "name: shared", `selector: {matchLabels: {share: "yes"}}`, 1)
}

// inTier is rule with its namespaces selected by label.
func inTier(tier, rule string) string {
	return strings.Replace(rule, `["MX-?"]`, `["MX-?"], selector: {matchLabels: {tier: `+tier+`}}`, 1)
}

var (
	nowhere = map[string]string{}
	inBoth  = inEach(cloned)
	inB     = map[string]string{"b/shared": cloned}
)

func inEach(clone string) map[string]string {
	return map[string]string{"a/shared": clone, "b/shared": clone}
}

func each(verb string) []string { return []string{verb + " a/shared", verb + " b/shared"} }

// scene is where one situation is played.
type scene struct {
	*env

	situation
	prefix string
}

func (s scene) own(text string) string     { return strings.ReplaceAll(text, "MX", s.prefix) }
func (s scene) place(suffix string) string { return s.prefix + "-" + suffix }

func (s scene) setUp() {
	for _, suffix := range []string{"src", "a", "b"} {
		s.Namespace(s.place(suffix), "tier=gold")
	}
	if !s.sourceless {
		s.createSource()
	}
	if s.given != nil {
		s.given(s)
	}
}

func (s scene) createSource() {
	source := lab.Secret(s.place("src"), "shared", map[string]string{"k": "v"})
	source.Labels = map[string]string{"share": "yes", "color": "red"}
	s.Create(source.Namespace, source)
}

// clones shows every Secret of the scene but the source: what it holds, its
// labels but ours, and the rule that its marks name.
func (s scene) clones(ctx context.Context) (map[string]string, error) {
	all, err := s.Admin.CoreV1().Secrets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	shown := map[string]string{}
	for _, secret := range all.Items {
		suffix, ours := strings.CutPrefix(secret.Namespace, s.prefix+"-")
		if ours && suffix != "src" {
			shown[suffix+"/"+secret.Name] = show(&secret)
		}
	}
	return shown, nil
}

func show(secret *corev1.Secret) string {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
		words = append(words, key+"="+string(secret.Data[key]))
	}
	for _, key := range slices.Sorted(maps.Keys(secret.Labels)) {
		if !strings.HasPrefix(key, mark.Domain) {
			words = append(words, key+":"+secret.Labels[key])
		}
	}
	if marks, ours := mark.Of(secret); ours {
		words = append(words, "by "+marks.Rule)
	}
	return strings.Join(words, " ")
}

// becomes waits until the clones are as want says.
func (s scene) becomes(t *testing.T, want map[string]string) {
	t.Helper()
	owned := map[string]string{}
	for place, clone := range want {
		owned[place] = s.own(clone)
	}
	require.NoError(t, lab.Eventually(t.Context(), func(ctx context.Context) error {
		got, err := s.clones(ctx)
		return errors.Join(err, lab.ErrorIf(!maps.Equal(got, owned), "the clones are %v, want %v", got, owned))
	}))
}

// written lists what of requests succeeded in the scene's namespaces. An
// attempt that the API server turned down, as when a namespace goes just then,
// has written nothing.
func (s scene) written(requests []cluster.Request) []string {
	var written []string
	for _, r := range requests {
		suffix, ours := strings.CutPrefix(r.Namespace, s.prefix+"-")
		if ours && r.Code < 300 {
			written = append(written, r.Verb+" "+suffix+"/"+r.Name)
		}
	}
	return written
}

// Invariants 1, 2, 4 and 7: whatever happens to whatever, while Headwater runs
// or while it is down, the outcome is what the rule asks for, and nothing else
// is written.
func TestWhateverHappensToWhatever(t *testing.T) {
	situations := allSituations()
	for _, thing := range []string{"source", "clone", "namespace", "rule"} {
		for _, event := range []string{"created", "modified", "deleted", "relabelled"} {
			require.True(t, slices.ContainsFunc(slices.Collect(maps.Keys(situations)), func(sentence string) bool {
				return strings.HasPrefix(sentence, thing+" "+event+": ")
			}), "no situation has a %s %s", thing, event)
		}
	}
	e := ownCluster(t)
	e.Sections = lab.EveryDelete
	up, down := setUp(e, "mx-up", situations), setUp(e, "mx-down", situations)
	h := e.Start(up.rulesBefore() + down.rulesBefore())
	up.settle(t, h)
	down.settle(t, h)

	since := e.Cluster.Mark()
	up.act()
	t.Run("while it runs", func(t *testing.T) {
		up.heardOf(t)
		e.ConfigFile(up.rulesAfter() + down.rulesBefore())
		up.check(t, h, since)
	})

	h.Stop()
	since = e.Cluster.Mark()
	down.act()
	h = e.Start(up.rulesAfter() + down.rulesAfter())
	t.Run("while it is down", func(t *testing.T) { down.check(t, h, since) })
}

// stage holds one scene for every situation, keyed by its sentence.
type stage struct {
	*env

	scenes map[string]scene
}

func setUp(e *env, prefix string, situations map[string]situation) stage {
	st := stage{e, map[string]scene{}}
	for i, sentence := range slices.Sorted(maps.Keys(situations)) {
		s := scene{e, situations[sentence].defaulted(), fmt.Sprintf("%s-%02d", prefix, i)}
		s.setUp()
		st.scenes[sentence] = s
	}
	return st
}

func (st stage) rulesBefore() (rules string) {
	for _, s := range st.scenes {
		rules += s.own(s.rules)
	}
	return rules
}

func (st stage) rulesAfter() (rules string) {
	for _, s := range st.scenes {
		rules += s.own(s.then)
	}
	return rules
}

func (st stage) settle(t *testing.T, h *lab.Headwater) {
	t.Helper()
	for _, s := range st.scenes {
		s.becomes(t, s.before)
	}
	st.Settled(h)
}

func (st stage) act() {
	for _, s := range st.scenes {
		s.act(s)
	}
}

// heardOf waits for what needs no other rules: a change of the file has
// everything looked at again, and would hide that an event goes unheard.
func (st stage) heardOf(t *testing.T) {
	t.Helper()
	for sentence, s := range st.scenes {
		if s.then == s.rules {
			t.Run(sentence, func(t *testing.T) { s.becomes(t, s.after) })
		}
	}
}

// check checks that every scene came to what is asked for, and that since then
// nothing else was written, in other scenes neither.
func (st stage) check(t *testing.T, h *lab.Headwater, since cluster.Mark) {
	t.Helper()
	for sentence, s := range st.scenes {
		t.Run(sentence+", in the end", func(t *testing.T) { s.becomes(t, s.after) })
	}
	st.Settled(h)
	requests := slices.DeleteFunc(st.Writes(since), func(r cluster.Request) bool {
		return r.Name == "headwater-last-valid" || r.Name == "headwater-removals"
	})
	for sentence, s := range st.scenes {
		t.Run(sentence+", and no more", func(t *testing.T) {
			require.ElementsMatch(t, s.wrote, s.written(requests))
			s.becomes(t, s.after)
		})
		requests = slices.DeleteFunc(requests, func(r cluster.Request) bool { return strings.HasPrefix(r.Namespace, s.prefix+"-") })
	}
	require.Empty(t, requests)
	failures, err := h.Metric(t.Context(), "headwater_sync_failures_total", nil)
	require.NoError(t, err)
	require.Zero(t, failures, "all of these are normal outcomes")
}

func (s situation) defaulted() situation {
	if s.rules == "" {
		s.rules = standardRule
	}
	if s.then == "" {
		s.then = s.rules
	}
	if s.act == nil {
		s.act = func(scene) {} // what happens is that the file is another
	}
	if s.before == nil {
		s.before = inBoth
	}
	if s.after == nil {
		s.after = s.before
	}
	return s
}
