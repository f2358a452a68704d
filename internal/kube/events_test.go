package kube

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestANoteIsNeverLongerThanTheAPIServerTakes(t *testing.T) {
	events := NewEvents(fake.NewClientset(), prometheus.NewRegistry(), zap.NewNop())
	var heard Event
	events.Subscribe(func(event Event) { heard = event })
	for sentence, note := range map[string]string{
		"a short one":            "short",
		"a long user name in it": "denied to " + strings.Repeat("ä", 2000),
	} {
		t.Run(sentence, func(t *testing.T) {
			events.Record(Event{About: &corev1.ObjectReference{Name: "shared"}, Note: note})
			require.LessOrEqual(t, len(heard.Note), 1024) // of the API, in bytes
			require.True(t, strings.HasPrefix(note, strings.TrimSuffix(heard.Note, "…")))
			require.Equal(t, len(note) > 1024, heard.Note != note)
		})
	}
}

// press is an Events that runs, on a clock of the test's.
type press struct {
	*testing.T

	events *Events
	api    *fake.Clientset
	clock  *clocktesting.FakeClock
}

func newPress(t *testing.T) *press {
	t.Helper()
	p := &press{T: t, api: fake.NewClientset(), clock: clocktesting.NewFakeClock(time.Unix(1e9, 0))}
	p.events = NewEvents(p.api, prometheus.NewRegistry(), zap.NewNop())
	p.events.clock = p.clock
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.events.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	return p
}

func (p *press) tell(note string) {
	p.clock.Step(time.Millisecond)
	p.events.Record(Event{About: &corev1.ObjectReference{Namespace: "team", Name: "shared"}, Reason: "CloneFailed", Note: note})
}

// shows waits until these, by note, are the Events that there are.
func (p *press) shows(want map[string]int32) {
	p.Helper()
	require.Eventually(p, func() bool {
		events, got := p.listed(), map[string]int32{}
		for _, event := range events {
			got[event.Note] += times(event)
		}
		return len(events) == len(want) && maps.Equal(got, want)
	}, 10*time.Second, time.Millisecond)
}

func (p *press) listed() []eventsv1.Event {
	p.Helper()
	list, err := p.api.EventsV1().Events("team").List(p.Context(), metav1.ListOptions{})
	require.NoError(p, err)
	return list.Items
}

func times(event eventsv1.Event) int32 {
	if event.Series == nil {
		return 1
	}
	return event.Series.Count
}

func TestEachNoteIsAnEventAndItsRepeatsASeries(t *testing.T) {
	p := newPress(t)
	p.tell("quota")
	p.tell("policy")
	p.shows(map[string]int32{"quota": 1, "policy": 1})
	p.tell("policy")
	p.shows(map[string]int32{"quota": 1, "policy": 2})
}

func TestARepeatOfAnEventThatIsForgottenIsANewOne(t *testing.T) {
	p := newPress(t)
	p.tell("quota")
	p.shows(map[string]int32{"quota": 1})
	require.NoError(t, p.api.EventsV1().Events("team").Delete(t.Context(), p.listed()[0].Name, metav1.DeleteOptions{}))
	p.tell("quota")
	p.shows(map[string]int32{"quota": 1})
}

func TestEventsWaitForAnAPIServerThatCannotBeReached(t *testing.T) {
	p := newPress(t)
	asked := make(chan struct{})
	p.api.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		_, first := <-asked
		return first, nil, errors.New("connection refused")
	})
	p.tell("quota")
	asked <- struct{}{}
	close(asked)
	require.Eventually(t, func() bool { return p.clock.Waiters() == 2 }, 10*time.Second, time.Millisecond, "the pause, and the ticker")
	p.clock.Step(tryAgain)
	p.shows(map[string]int32{"quota": 1})
}
