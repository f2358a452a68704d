package events

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

	"github.com/headwater-k8s/headwater/internal/dedupe"
)

func TestANoteIsNeverLongerThanTheAPIServerTakes(t *testing.T) {
	events := NewRecorder(fake.NewClientset(), prometheus.NewRegistry(), zap.NewNop())
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

	events *Recorder
	api    *fake.Clientset
	clock  *clocktesting.FakeClock
}

func newPress(t *testing.T) *press {
	t.Helper()
	p := &press{T: t, api: fake.NewClientset(), clock: clocktesting.NewFakeClock(time.Unix(1e9, 0))}
	p.events = NewRecorder(p.api, prometheus.NewRegistry(), zap.NewNop())
	p.events.clock = p.clock
	p.run()
	return p
}

func (p *press) run() {
	ctx, stop := context.WithCancel(p.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.events.Run(ctx) }()
	p.Cleanup(func() { stop(); <-done })
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
	}, time.Minute, time.Millisecond)
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
	require.Eventually(t, func() bool { return p.clock.Waiters() == 2 }, time.Minute, time.Millisecond, "the pause, and the ticker")
	p.clock.Step(retryInterval)
	p.shows(map[string]int32{"quota": 1})
}

// restart is another process on the same API server and clock.
func (p *press) restart() *press {
	p.Helper()
	next := &press{T: p.T, api: p.api, clock: p.clock}
	next.events = NewRecorder(p.api, prometheus.NewRegistry(), zap.NewNop())
	next.events.clock = p.clock
	next.run()
	return next
}

// condition records a condition, which is recorded again after each restart.
func (p *press) condition(note string) {
	p.clock.Step(time.Millisecond)
	p.events.Record(Event{
		About: &corev1.ObjectReference{Namespace: "team", Name: "shared"}, Reason: "Conflict", Note: note, Persisting: true,
	})
}

// stored counts the requests that changed an Event.
func (p *press) stored() (writes int) {
	for _, action := range p.api.Actions() {
		if action.GetVerb() == "patch" {
			writes++
		}
	}
	return writes + len(p.listed())
}

func TestARestartRepeatsNoConditionThatWasReportedALittleWhileAgo(t *testing.T) {
	p := newPress(t)
	p.condition("taken")
	p.shows(map[string]int32{"taken": 1})

	p = p.restart()
	p.clock.Step(dedupe.Interval / 2)
	p.condition("taken")
	p.condition("another")
	p.shows(map[string]int32{"taken": 1, "another": 1})
	require.Equal(t, 2, p.stored())

	p = p.restart()
	p.clock.Step(dedupe.Interval)
	p.condition("taken")
	p.shows(map[string]int32{"taken": 2, "another": 1})
	require.Len(t, p.listed(), 2)

	p = p.restart()
	p.condition("taken")
	p.condition("taken") // a repeat within the process counts on
	p.shows(map[string]int32{"taken": 3, "another": 1})
}

func TestARestartCountsAnOccurrenceOnTheEventThatExists(t *testing.T) {
	p := newPress(t)
	p.tell("quota")
	p.tell("quota")
	p.shows(map[string]int32{"quota": 2})
	p = p.restart()
	p.tell("quota")
	p.shows(map[string]int32{"quota": 3})
	require.Len(t, p.listed(), 1)
}

func TestAnEventWhoseAnswerWasLostIsOneOccurrence(t *testing.T) {
	p := newPress(t)
	lost := make(chan struct{}, 1)
	lost <- struct{}{}
	p.api.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		select {
		case <-lost:
			created, _ := action.(clienttesting.CreateAction)
			require.NoError(t, p.api.Tracker().Create(eventsv1.SchemeGroupVersion.WithResource("events"), created.GetObject(), "team"))
			return true, nil, errors.New("connection reset")
		default:
			return false, nil, nil
		}
	})
	p.tell("quota")
	require.Eventually(t, func() bool { return p.clock.Waiters() == 2 }, time.Minute, time.Millisecond, "the pause, and the ticker")
	p.clock.Step(retryInterval)
	p.tell("policy")
	p.shows(map[string]int32{"quota": 1, "policy": 1})
}

func TestAnEventIsNamedAfterWhatItSays(t *testing.T) {
	event := Event{About: &corev1.ObjectReference{Kind: "Secret", Namespace: "team", Name: "shared"}, Reason: "Conflict", Note: "taken"}
	name := func(change func(*Event)) string {
		changed := event
		about := *event.About
		changed.About = &about
		change(&changed)
		return (&series{Event: changed}).objectName()
	}
	same := name(func(*Event) {})
	require.Equal(t, same, name(func(e *Event) { e.at = time.Unix(1, 0); e.Rule = "blog" }))
	require.True(t, strings.HasPrefix(same, "shared."))
	require.True(t, strings.HasPrefix(name(func(e *Event) { e.About.Name = "system:node" }), "headwater."))
	require.True(t, strings.HasPrefix(name(func(e *Event) { e.About.Name = strings.Repeat("a", 253) }), "headwater."))
	for sentence, change := range map[string]func(*Event){
		"another object":         func(e *Event) { e.About.Name = "other" },
		"another kind":           func(e *Event) { e.About.Kind = "ConfigMap" },
		"the object recreated":   func(e *Event) { e.About.UID = "2" },
		"another related object": func(e *Event) { e.Related = &corev1.ObjectReference{Name: "source"} },
		"a warning":              func(e *Event) { e.Warning = true },
		"another reason":         func(e *Event) { e.Reason = "OtherRule" },
		"another action":         func(e *Event) { e.Action = "Update" },
		"another note":           func(e *Event) { e.Note = "taken over" },
	} {
		t.Run(sentence, func(t *testing.T) { require.NotEqual(t, same, name(change)) })
	}
}
