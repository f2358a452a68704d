package notify

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/headwater-k8s/headwater/internal/kube/events"
)

// hook is a receiver that answers as it is told to.
type hook struct {
	*httptest.Server

	mu     sync.Mutex
	bodies []string
	answer func(http.ResponseWriter, *http.Request)
}

func newHook(t *testing.T, answer func(http.ResponseWriter, *http.Request)) *hook {
	t.Helper()
	h := &hook{answer: answer}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		h.bodies = append(h.bodies, string(body))
		h.mu.Unlock()
		if h.answer != nil {
			h.answer(w, r)
		}
	}))
	t.Cleanup(h.Close)
	return h
}

// newHanging returns a receiver that does not answer before it is released.
func newHanging(t *testing.T) (h *hook, release func()) {
	t.Helper()
	released := make(chan struct{})
	release = sync.OnceFunc(func() { close(released) })
	h = newHook(t, func(http.ResponseWriter, *http.Request) { <-released })
	t.Cleanup(release)
	return h, release
}

func (h *hook) got() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.bodies...)
}

// world is a Notifier that runs by a clock of the test's.
type world struct {
	*testing.T
	*Notifier

	clock *clocktesting.FakeClock
	logs  *observer.ObservedLogs
}

func run(t *testing.T, receivers ...Receiver) *world {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	clk := clocktesting.NewFakeClock(start)
	for i := range receivers {
		receivers[i].Default()
	}
	w := &world{T: t, clock: clk, logs: logs, Notifier: New(receivers, clk, prometheus.NewRegistry(), zap.New(core))}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.Notifier.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Error("the notifier does not stop")
		}
	})
	return w
}

// until lets time pass, a second at a time, until what is so.
func (w *world) until(what func() bool) {
	w.Helper()
	require.Eventually(w, func() bool {
		if what() {
			return true
		}
		w.clock.Step(time.Second)
		return false
	}, time.Minute, 2*time.Millisecond)
}

// givenUp waits until one report is given up, which is logged after it is counted, and returns
// what is logged of it.
func (w *world) givenUp() map[string]any {
	w.Helper()
	lost := func() *observer.ObservedLogs { return w.logs.FilterLevelExact(zapcore.ErrorLevel) }
	w.until(func() bool { return lost().Len() > 0 })
	require.InDelta(w, 1, w.counted(failed), 0)
	return lost().All()[0].ContextMap()
}

func (w *world) counted(result string) float64 {
	return testutil.ToFloat64(w.results.WithLabelValues(result))
}

// requireSecret shows that nothing that was logged holds secret.
func (w *world) requireSecret(secret string) {
	w.Helper()
	for _, entry := range w.logs.All() {
		require.NotContains(w, fmt.Sprint(entry.Message, entry.ContextMap()), secret)
	}
}

func TestAReportIsPostedAsJSON(t *testing.T) {
	to := newHook(t, nil)
	w := run(t, Receiver{URL: to.URL + "/hook"})
	w.Hear(conflict("a", "x"))
	w.Hear(conflict("a", "y"))
	w.Hear(reloaded("x"))
	w.until(func() bool { return w.counted(sent) == 1 })
	require.Equal(t, []string{
		`{"message":"Headwater: Conflict, rule a, 2 times\nSecret x/blogsecret: is not Headwater's\nSecret y/blogsecret: is not Headwater's"}`,
	}, to.got(), "restarts were not asked for")
}

func TestWhatFailsIsTriedAgain(t *testing.T) {
	tries := 0
	to := newHook(t, func(w http.ResponseWriter, _ *http.Request) {
		tries++
		if tries <= 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	w := run(t, Receiver{URL: to.URL})
	w.Hear(conflict("a", "x"))
	w.until(func() bool { return w.counted(sent) == 1 })
	require.Len(t, to.got(), 4)
	require.Equal(t, 1, w.logs.FilterMessage("send report: retrying with backoff").Len(), "once is enough")
}

func TestWhatIsRefusedForGoodIsGivenUpWithoutAWordOfTheURL(t *testing.T) {
	for sentence, c := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request)
		why    string
	}{
		"a token that is not valid": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, r.URL.String())
		}, "it answered 403 Forbidden"},
		"it has moved": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/t0ken", http.StatusMovedPermanently)
		}, "it answered 301 Moved Permanently"},
	} {
		t.Run(sentence, func(t *testing.T) {
			to := newHook(t, c.answer)
			w := run(t, Receiver{URL: to.URL + "/t0ken?key=t0ken"})
			w.Hear(conflict("a", "x"))
			require.Equal(t, c.why, w.givenUp()["error"])
			require.Len(t, to.got(), 1)
			w.requireSecret("t0ken")
		})
	}
}

func TestWhatCannotBeReachedIsGivenUpAfterTenMinutesWithoutAWordOfTheURL(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	w := run(t, Receiver{URL: gone.URL + "/t0ken"})
	w.Hear(conflict("a", "x"))
	given := w.givenUp()
	require.Contains(t, given["error"], "connection refused")
	require.GreaterOrEqual(t, w.clock.Since(start), giveUp-2*maxPause)
	require.LessOrEqual(t, given["tries"], int64(giveUp/maxPause+10), "the pauses grow")
	w.requireSecret("t0ken")
}

func TestAReceiverThatHangsDelaysNoOther(t *testing.T) {
	hangs, _ := newHanging(t)
	answers := newHook(t, nil)
	w := run(t, Receiver{URL: hangs.URL}, Receiver{URL: answers.URL})
	for i := range 3 {
		w.Hear(conflict(fmt.Sprint("rule-", i), "x"))
	}
	w.until(func() bool { return len(answers.got()) == 3 && len(hangs.got()) == 1 })
}

func TestTheOldestIsDroppedWhereThereIsNoRoom(t *testing.T) {
	hangs, release := newHanging(t)
	w := run(t, Receiver{URL: hangs.URL})
	w.Hear(conflict("first", "x"))
	w.until(func() bool { return len(hangs.got()) == 1 })
	for i := range maxWaiting + 5 {
		w.Hear(conflict(fmt.Sprintf("rule-%03d", i), "x"))
	}
	w.until(func() bool { return w.counted(dropped) == 5 })
	release()
	w.until(func() bool { return w.counted(sent) == 1+maxWaiting })
	require.Contains(t, hangs.got()[1], "rule-005")
}

func TestReceiversAreChangedWhileItRuns(t *testing.T) {
	before, after := newHook(t, nil), newHook(t, nil)
	w := run(t, Receiver{URL: before.URL})
	w.Hear(conflict("a", "x"))
	w.until(func() bool { return w.counted(sent) == 1 })
	w.Swap([]Receiver{{URL: after.URL, On: []topic{topicReloaded}}})
	w.Hear(conflict("b", "x"))
	w.Hear(reloaded("x"))
	w.until(func() bool { return len(after.got()) == 1 })
	require.Contains(t, after.got()[0], "Reloaded")
	require.Len(t, before.got(), 1)
}

func TestAURLIsReadFromItsFileForEachReport(t *testing.T) {
	first, second := newHook(t, nil), newHook(t, nil)
	file := filepath.Join(t.TempDir(), "url")
	w := run(t, Receiver{URLFile: file})
	w.Hear(conflict("a", "x"))
	w.until(func() bool { return w.logs.FilterMessage("send report: retrying with backoff").Len() == 1 })
	require.NoError(t, os.WriteFile(file, []byte(first.URL+"\n"), 0o600))
	w.until(func() bool { return len(first.got()) == 1 })
	require.NoError(t, os.WriteFile(file, []byte(second.URL+"\n"), 0o600))
	w.Hear(conflict("b", "x"))
	w.until(func() bool { return len(second.got()) == 1 })
}

func TestWhatEveryReplicaTellsIsReportedByTheLeader(t *testing.T) {
	to := newHook(t, nil)
	w := run(t, Receiver{URL: to.URL, On: Topics()})
	invalid := func(note string) events.Event { return events.Event{Reason: "ConfigInvalid", Note: note} }
	w.Hear(invalid("not led"))
	w.Hear(events.Event{Reason: "Denied", Note: "sent by alice"})
	ctx, resign := context.WithCancel(t.Context())
	led := make(chan struct{})
	go func() {
		defer close(led)
		_ = w.Lead(ctx)
	}()
	require.Eventually(t, w.leading.Load, time.Minute, time.Millisecond)
	w.Hear(invalid("led"))
	resign()
	<-led
	w.Hear(invalid("led no more"))
	w.until(func() bool { return len(to.got()) == 2 })
	require.ElementsMatch(t, []string{
		`{"message":"Headwater: ConfigInvalid\nHeadwater: led"}`,
		`{"message":"Headwater: Denied\nHeadwater: sent by alice"}`,
	}, to.got())
}

// What services of the library send is what those behind take: Slack and Teams
// cannot be asked here.
func TestSlackAndTeamsGetWhatTheyTake(t *testing.T) {
	for sentence, c := range map[string]struct{ url, host, body string }{
		"Slack": {slackWebhook, "hooks.slack.com", `"text":"Headwater: Conflict"`},
		"Teams": {teamsWebhook, "prod-00.westus.logic.azure.com:443", `"text":"Headwater: Conflict"`},
	} {
		t.Run(sentence, func(t *testing.T) {
			var asked *http.Request
			var body string
			by := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
				content, err := io.ReadAll(r.Body)
				asked, body = r, string(content)
				return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("ok")), Request: r}, err
			})}
			require.Empty(t, post(t.Context(), by, Receiver{URL: c.url}, "Headwater: Conflict"))
			require.Equal(t, c.host, asked.URL.Host)
			require.Equal(t, c.url, asked.URL.String())
			require.Contains(t, body, c.body)
		})
	}
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }
