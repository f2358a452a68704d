package prove

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/headwater-k8s/headwater/internal/configmap"
	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/spec"
)

func TestWhatIsOnRecordSaysWhenItWasTried(t *testing.T) {
	client := fake.NewClientset()
	passing := clocktesting.NewFakeClock(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	p := &Prover{
		Prober: fake.NewClientset(protecttest.NewSecret().ToAPI()), Store: configmap.Store{Client: client, Namespace: "headwater", Name: ProofsConfigMap}, Namespace: "headwater", Rules: rules.NewLive(rules.NewSet(protecttest.BlogRule())),
		Engine: func() spec.Engine { return spec.EngineWebhook }, OnChange: func() {},
		Protected: func(rule spec.Rule) []object.Ref { return []object.Ref{rule.Source.Ref()} },
		Source:    func(object.Ref) (*object.Full, bool) { return nil, false },
		Clock:     passing, Events: &protecttest.Events{}, Metrics: NewMetrics(prometheus.NewRegistry()), Log: zaptest.NewLogger(t), Wake: loop.NewWake(),
		doubtSince: map[string]time.Time{}, stored: map[string]Status{},
	}
	look := func(after time.Duration) map[string]string {
		passing.Step(after)
		_, err := p.verify(t.Context())
		require.NoError(t, err)
		stored, err := client.CoreV1().ConfigMaps("headwater").Get(t.Context(), ProofsConfigMap, metav1.GetOptions{})
		if err != nil {
			return nil
		}
		return stored.Data
	}
	shown := func() string {
		if standing, known := p.Status("blogsecret"); known {
			return standing.String()
		}
		return ""
	}
	require.Empty(t, look(0), "a moment proves nothing")
	require.Empty(t, shown())
	first := look(Settling)
	require.Contains(t, first, "blogsecret")
	require.Equal(t, first["blogsecret"], shown(), "who asks gets the same")
	require.Equal(t, "2026-11-22T12:00:05Z", first[LastTried])
	require.Equal(t, first, look(RecordInterval-time.Second), "nothing is written before that is due")
	later := look(time.Second)
	require.Equal(t, "2026-11-22T12:10:05Z", later[LastTried])
	require.Equal(t, first["blogsecret"], later["blogsecret"], "since when it stands so")

	p.Rules.Swap(rules.NewSet(protecttest.BlogRule(func(r *spec.Rule) { r.Mode = spec.Warn })))
	require.Empty(t, look(time.Second), "nothing is refused: nothing is proven")
	require.Empty(t, shown())
}
