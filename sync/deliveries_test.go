package sync

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/stages"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

var reachedAt = time.Unix(1_800_000_000, 0).UTC()

// staged is the rule blog with team-0 and team-1 as its first stage.
func staged(tb testing.TB) spec.Rule {
	tb.Helper()
	return *synctest.Rule(tb, func(c *spec.Config) {
		c.Delivery = &stages.Delivery{Stages: []stages.Stage{{
			Name: "canary", Namespaces: &stages.StageNamespaces{Include: []string{"team-0", "team-1"}}, Soak: &metav1.Duration{Duration: time.Minute},
		}}}
	})
}

// recordedAs records a revision of the source of staged.
func recordedAs(number int, value string, annotations map[string]string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "headwater-system", Name: fmt.Sprint("revision-", number), Labels: map[string]string{mark.Revision: fmt.Sprint(number)},
			Annotations: object.Merged(map[string]string{mark.Rule: "blog", mark.Source: "Secret/platform/blogsecret"}, annotations),
		},
		Immutable: new(true), Data: map[string][]byte{"password": []byte(value)},
	}
}

// delivering is the View of a cluster with so many namespaces, in whose first stage
// revision 2 is being delivered. team-0 has it.
func delivering(tb testing.TB, namespaces int) *View {
	tb.Helper()
	return deliveringWith(tb, namespaces, func(*corev1.Secret) {})
}

// deliveringWith is delivering, with a change of the clone that team-0 has.
func deliveringWith(tb testing.TB, namespaces int, change func(*corev1.Secret)) *View {
	tb.Helper()
	var metadata []runtime.Object
	for i := range namespaces {
		metadata = append(metadata, &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("team-%d", i)},
		})
	}
	source := recordedAs(0, "second", nil)
	source.ObjectMeta = metav1.ObjectMeta{Namespace: "platform", Name: "blogsecret", UID: "source-1", ResourceVersion: "5"}
	source.Immutable = nil
	evidence := revisions.Evidence{By: "this", Look: "canary", UpTo: "1000000", Readers: 1, Stages: []revisions.StageEvidence{{Name: "canary", Ran: 1, Namespaces: 1, Proven: 1}}}
	v, clients := viewOn(tb, []runtime.Object{
		source, recordedAs(1, "first", map[string]string{mark.Verdict: string(revisions.Delivered)}),
		recordedAs(2, "second", map[string]string{mark.Verdict: string(revisions.Delivering), mark.Stage: "canary", mark.StageSince: mark.FormatTime(reachedAt), mark.Protocol: "evidence", mark.Evidence: evidence.String()}),
	}, metadata, staged(tb))
	v.controller.now = func() time.Time { return reachedAt.Add(time.Second) }
	target := object.Ref{Kind: object.Secret, Namespace: "team-0", Name: "blogsecret"}
	state, err := v.controller.State(target)
	require.NoError(tb, err)
	desired := plan.Plan(state).Desired
	require.NotNil(tb, desired)
	clone := desired.ToSecret()
	change(clone)
	_, err = clients.Typed.CoreV1().Secrets(target.Namespace).Create(tb.Context(), clone, metav1.CreateOptions{})
	require.NoError(tb, err)
	require.Eventually(tb, func() bool {
		_, cached := v.controller.Caches.Clones[target.Kind].Get(target.Namespace, target.Name)
		return cached
	}, time.Minute, time.Millisecond)
	return v
}

func TestADeliveryIsCountedByStage(t *testing.T) {
	v, rule := delivering(t, 5), staged(t)
	states, more := v.Deliveries(&rule, 1)
	require.Zero(t, more)
	require.Len(t, states, 1)
	state := states[0]
	require.True(t, state.NeedsAttention())
	require.Equal(t, []int{2, 2, 1}, []int{state.Latest.Number, state.Wanted.Number, state.Stable.Number})
	require.Equal(t, []survey.StageState{
		{Name: "canary", Namespaces: 2, HaveWanted: 1, Reached: true, Evidence: revisions.StageEvidence{Name: "canary", Ran: 1, Namespaces: 1, Proven: 1}}, {Name: "rest", Namespaces: 3},
	}, state.Stages)
	require.Equal(t, delivery.Wait, state.Step.Outcome)
	require.Equal(t, delivery.Lacking, state.Step.State)
	require.Contains(t, state.Step.Reason, "1 namespace without a clone of it: team-1")
	require.Equal(t, 30*time.Minute, state.Step.Left)

	states, more = v.Deliveries(&rule, 0)
	require.Empty(t, states)
	require.Equal(t, 1, more)

	have := map[string]int{}
	for _, f := range read(v) {
		have[f.Target.Namespace] = f.Revision
	}
	require.Equal(t, 2, have["team-0"])
	require.Zero(t, have["team-2"])
}

func TestACloneThatOnlyNamesARevisionIsNotCountedForIt(t *testing.T) {
	for sentence, change := range map[string]func(*corev1.Secret){
		"another value":    func(s *corev1.Secret) { s.Data["password"] = []byte("edited") },
		"another revision": func(s *corev1.Secret) { s.Annotations[mark.Revision] = "1" },
		"another place":    func(s *corev1.Secret) { s.Annotations[mark.Target] = "team-3/blogsecret" },
	} {
		t.Run(sentence, func(t *testing.T) {
			v, rule := deliveringWith(t, 5, change), staged(t)
			states, _ := v.Deliveries(&rule, 1)
			require.Equal(t, []int{2, 0}, []int{states[0].Stages[0].Namespaces, states[0].Stages[0].HaveWanted})
		})
	}
}

// A rule that gets another source, or another rule in its place, has something to go back to.
func TestWhatARuleGaveOutFromAnotherSourceIsSomethingToGoBackTo(t *testing.T) {
	for sentence, test := range map[string]struct {
		rule, source string
		want         int
	}{
		"the rule had another source":            {"blog", "older", 1},
		"a rule that is gone had the source":     {"gone", "blogsecret", 1},
		"a rule that is gone had another source": {"gone", "older", 1},
		"another rule clones there":              {"first", "older", 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			rule, first, source, clone := staged(t), staged(t), recordedAs(0, "second", nil), recordedAs(0, "first", nil)
			first.Name, source.Immutable, clone.Immutable = "first", nil, nil
			source.ObjectMeta = metav1.ObjectMeta{Namespace: "platform", Name: "blogsecret", UID: "source-1", ResourceVersion: "5"}
			team := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "team-2"}}
			v, clients := viewOn(t, []runtime.Object{source}, []runtime.Object{team}, first, rule)
			clone.ObjectMeta = metav1.ObjectMeta{Namespace: "team-2", Name: "blogsecret"}
			mark.Stamp(&clone.ObjectMeta, mark.Clone{Rule: test.rule, Source: object.Ref{Kind: object.Secret, Namespace: "platform", Name: test.source}})
			_, err := clients.Typed.CoreV1().Secrets("team-2").Create(t.Context(), clone, metav1.CreateOptions{})
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				_, cached := v.controller.Caches.Clones[object.Secret].Get("team-2", "blogsecret")
				return cached
			}, time.Minute, time.Millisecond)
			cached, _ := v.controller.Caches.Sources.Get(rule.Source.Ref())
			require.NotNil(t, cached)
			require.Len(t, v.controller.OtherPayloads(&rule, cached), test.want)
		})
	}
}

// What the page costs for each delivery that changes, among 10,000 namespaces.
func BenchmarkDeliveries(b *testing.B) {
	v, rule := delivering(b, 10_000), staged(b)
	for b.Loop() {
		v.Deliveries(&rule, 1)
	}
}
