package app

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/client-go/kubernetes/fake"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/kube/leader"
)

func TestALossIsToldAtItsBeginningAndAtItsEnd(t *testing.T) {
	logged, logs := observer.New(zapcore.InfoLevel)
	recorder := events.NewRecorder(fake.NewClientset(), prometheus.NewRegistry(), zap.NewNop())
	var recorded []events.Event
	recorder.Subscribe(func(event events.Event) { recorded = append(recorded, event) })
	began := time.Unix(0, 0)
	l := &losses{
		namespace: "headwater-system", leads: &leader.Leader{}, events: recorder, clock: testingclock.NewFakeClock(began.Add(time.Minute)),
		log: zap.New(logged), told: map[string]*kube.Loss{},
	}
	var now []*kube.Loss
	lose := func(caches ...string) {
		now = nil
		for _, cache := range caches {
			now = append(now, &kube.Loss{Cache: cache, Resource: "secrets", Since: began, Why: "the API server answers 429"})
		}
	}
	says := func(lines int, reasons ...string) {
		t.Helper()
		l.tell(now)
		var got []string
		for _, event := range recorded {
			got = append(got, event.Reason)
			require.Equal(t, "headwater", event.About.Name)
		}
		require.Equal(t, reasons, got)
		require.Len(t, logs.TakeAll(), lines)
		recorded = nil
	}

	says(0)
	lose("clones: secrets", "other secrets")
	l.tell(now)
	require.Contains(t, recorded[0].Note, "Headwater cannot read secrets since 1970-01-01T00:00:00Z (clones: secrets): the API server answers 429; ")
	recorded, now = nil, nil
	logs.TakeAll()
	says(2, "ReadsAgain")

	lose("clones: secrets", "other secrets")
	says(2, "CannotRead")
	says(0)
	lose("clones: secrets", "other secrets", "pods")
	says(1)
	lose("clones: secrets")
	says(2)
	lose()
	says(1, "ReadsAgain")
	says(0)
}
