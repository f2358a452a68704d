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
		c.Delivery = &spec.Delivery{Stages: []spec.Stage{{
			Name: "canary", Namespaces: &spec.StageNamespaces{Include: []string{"team-0", "team-1"}}, Soak: metav1.Duration{Duration: time.Minute},
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
	var metadata []runtime.Object
	for i := range namespaces {
		metadata = append(metadata, &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("team-%d", i)},
		})
	}
	source := recordedAs(0, "second", nil)
	source.ObjectMeta = metav1.ObjectMeta{Namespace: "platform", Name: "blogsecret", UID: "source-1", ResourceVersion: "5"}
	source.Immutable = nil
	v, clients := viewOn(tb, []runtime.Object{
		source, recordedAs(1, "first", map[string]string{mark.Verdict: string(delivery.Delivered)}),
		recordedAs(2, "second", map[string]string{mark.Verdict: string(delivery.Delivering), mark.Stage: "canary", mark.StageSince: mark.FormatTime(reachedAt)}),
	}, metadata, staged(tb))
	v.controller.now = func() time.Time { return reachedAt.Add(time.Second) }
	target := object.Ref{Kind: object.Secret, Namespace: "team-0", Name: "blogsecret"}
	state, err := v.controller.State(target)
	require.NoError(tb, err)
	desired := plan.Plan(state).Desired
	require.NotNil(tb, desired)
	desired.Annotations[mark.Consumers] = "2 Healthy"
	_, err = clients.Typed.CoreV1().Secrets(target.Namespace).Create(tb.Context(), desired.ToSecret(), metav1.CreateOptions{})
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
		{Name: "canary", Namespaces: 2, HaveWanted: 1, Healthy: 1, Pending: 1}, {Name: "rest", Namespaces: 3},
	}, state.Stages)
	require.Equal(t, delivery.Wait, state.Step.Outcome)
	require.Contains(t, state.Step.Reason, "team-1 (no clone of it yet)")
	require.Equal(t, reachedAt.Add(30*time.Minute), state.Step.Until)

	states, more = v.Deliveries(&rule, 0)
	require.Empty(t, states)
	require.Equal(t, 1, more)

	revisions := map[string]string{}
	v.Survey(func(f survey.CloneStatus) { revisions[f.Target.Namespace] = fmt.Sprint(f.Revision, " ", f.Consumers) })
	require.Equal(t, "2 2 Healthy", revisions["team-0"])
	require.Equal(t, "0 ", revisions["team-2"])
}

// What the page costs for each delivery that changes, among 10,000 namespaces.
func BenchmarkDeliveries(b *testing.B) {
	v, rule := delivering(b, 10_000), staged(b)
	for b.Loop() {
		v.Deliveries(&rule, 1)
	}
}
