package page

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/headwater-k8s/headwater/internal/page/grid"
)

// service is a subject that a test changes.
type service struct {
	mu       sync.Mutex
	standing Leadership
	rules    []string
	places   map[grid.Target]grid.Place
	surveys  int

	conditions Conditions
	deliveries Deliveries
	// asked is how often the deliveries were read.
	asked int
}

func newService(places ...grid.Place) *service {
	s := &service{standing: Leadership{Here: true}, rules: []string{"one", "two"}, places: map[grid.Target]grid.Place{}}
	for _, place := range places {
		s.places[place.Target] = place
	}
	return s
}

func (s *service) use(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *service) Standing() (standing Leadership) {
	s.use(func() { standing = s.standing })
	return standing
}

func (s *service) Conditions() (conditions Conditions) {
	s.use(func() { conditions = s.conditions })
	return conditions
}

func (s *service) Deliveries() (deliveries Deliveries) {
	s.use(func() {
		s.asked++
		deliveries = s.deliveries
	})
	return deliveries
}

func (s *service) Rules() (rules []string) {
	s.use(func() { rules = s.rules })
	return rules
}

func (s *service) Survey(report func(grid.Place)) {
	s.use(func() {
		s.surveys++
		for _, place := range s.places {
			report(place)
		}
	})
}

func (s *service) Glance() func(grid.Target) []grid.Place {
	return func(target grid.Target) (found []grid.Place) {
		s.use(func() {
			if place, there := s.places[target]; there {
				found = append(found, place)
			}
		})
		return found
	}
}

// served is a page over HTTP.
type served struct {
	*testing.T

	service *service
	feed    *Feed
	url     string
}

func serve(t *testing.T, places ...grid.Place) *served {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	s := &served{T: t, service: newService(places...), feed: NewFeed()}
	page, err := New(s.service, s.feed, About{Version: "v1.2.3", Cluster: "prod <1>"})
	require.NoError(t, err)
	server := httptest.NewServer(page)
	s.url = server.URL
	t.Cleanup(func() {
		page.Close()
		server.Close()
		http.DefaultClient.CloseIdleConnections()
		goleak.VerifyNone(t, leaks)
	})
	return s
}

// get returns what a path answers: status, header and body.
func (s *served) get(path string) (answer, string) {
	s.Helper()
	response, err := http.Get(s.url + path)
	require.NoError(s, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(s, err)
	require.NoError(s, response.Body.Close())
	return answer{response.StatusCode, response.Header}, string(body)
}

type answer struct {
	StatusCode int
	Header     http.Header
}

// follow opens a stream; next waits for an event of that name.
func (s *served) follow() (next func(event string, into any)) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 20*time.Second)
	s.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+Path+"/stream", nil)
	require.NoError(s, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(s, err)
	s.Cleanup(func() { _ = response.Body.Close() })
	require.Equal(s, "text/event-stream", response.Header.Get("Content-Type"))
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	return func(event string, into any) {
		s.Helper()
		for lines.Scan() {
			if lines.Text() == "event: "+event {
				require.True(s, lines.Scan())
				require.NoError(s, json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "data: ")), into))
				return
			}
		}
		require.Fail(s, "the stream has ended", "waiting for %s: %v", event, lines.Err())
	}
}

func TestTheDocumentLoadsFromItsOwnOriginAlone(t *testing.T) {
	s := serve(t)
	response, body := s.get(Path)
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Contains(t, body, "v1.2.3")
	require.Contains(t, body, "<title>prod &lt;1&gt; · Headwater</title>")
	require.NotContains(t, body, "{{")
	require.Contains(t, body, `"name":"current"`)
	require.NotContains(t, body, "://", "an address of somebody else")
	policy := response.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} {
		require.Contains(t, policy, want)
	}
	require.NotContains(t, policy, "unsafe")
	for _, file := range []string{"page.css", "icon.svg", "js/app.js", "vendor/preact.js", "vendor/htm.js", "vendor/preact.LICENSE", "vendor/htm.LICENSE"} {
		response, _ := s.get(Path + "/" + file)
		require.Equal(t, http.StatusOK, response.StatusCode, file)
		require.Equal(t, policy, response.Header.Get("Content-Security-Policy"), file)
	}
	for _, path := range []string{"/page/page.html", "/page/nothing", "/page/js/../../page.go", "/elsewhere"} {
		response, _ := s.get(path)
		require.Equal(t, http.StatusNotFound, response.StatusCode, path)
	}
}

func TestTheStreamTellsWhatChanges(t *testing.T) {
	place := at("one", "a", grid.Behind)
	s := serve(t, place, at("two", "b", grid.Current))
	next := s.follow()
	var standing Leadership
	next("standing", &standing)
	require.True(t, standing.Here)
	var cells grid.Snapshot
	next("grid", &cells)
	require.Equal(t, []string{"one", "two"}, cells.Rules)
	require.ElementsMatch(t, []string{"a", "b"}, cells.Namespaces)

	s.service.use(func() { s.service.places[place.Target] = at("one", "a", grid.Current) })
	s.feed.Touched(place.Target)
	var delta grid.Delta
	next("delta", &delta)
	require.Len(t, delta.Cells[0], 2)
	require.Equal(t, int(grid.Current), delta.Cells[0][1])
	s.feed.SpreadBegan("one", "Secret/p/s", 1)
	s.feed.SpreadArrived("one", "Secret/p/s", true, true)
	var spreads []spreadMessage
	for next("spreads", &spreads); len(spreads[0].Points) < 2; next("spreads", &spreads) { // sent before the arrival
	}
	require.Equal(t, 1, spreads[0].Points[1].Count)
	var notes []grid.Note
	s.feed.Denied(grid.Note{What: "denied", Names: []string{"Update of Secret p/s"}})
	next("denials", &notes)
	require.Equal(t, "Update of Secret p/s", notes[0].Names[0])
	s.feed.Reloaded(grid.Note{What: "restarted", Names: []string{"Deployment/a/web"}})
	next("reloads", &notes)
	require.Equal(t, "Deployment/a/web", notes[0].Names[0])

	s.service.use(func() { require.Equal(t, 1, s.service.surveys, "what changed is found without a look at everything") })
	s.service.use(func() { s.service.rules = []string{"two"} })
	next("grid", &cells)
	require.Equal(t, []string{"two", "one"}, cells.Rules, "a rule that is gone, and whose clones are not, comes last")
	s.service.use(func() { s.service.standing = Leadership{Leader: "other"} })
	next("standing", &standing)
	require.Equal(t, Leadership{Leader: "other"}, standing)
	_, body := s.get(Path + "/list")
	require.JSONEq(t, `{"total":0,"hidden":0,"groups":[]}`, body, "what is not kept current is not shown")
}

// The page warns its reader when heartbeats are missing.
func TestAQuietStreamHasAHeartbeat(t *testing.T) {
	s := serve(t)
	next := s.follow()
	began := time.Now()
	next("heartbeat", &struct{}{})
	next("heartbeat", &struct{}{})
	require.Less(t, time.Since(began), 3*heartbeat)
}

func TestWhoComesLaterIsToldEverything(t *testing.T) {
	s := serve(t, at("one", "a", grid.Conflict))
	s.feed.Denied(grid.Note{What: "denied", Names: []string{"x"}})
	s.feed.SpreadBegan("one", "Secret/p/s", 7)
	s.feed.SpreadArrived("one", "Secret/p/s", true, false)
	for range 2 {
		next := s.follow()
		var spreads []spreadMessage
		var notes []grid.Note
		next("spreads", &spreads)
		require.Equal(t, 7, spreads[0].Places)
		next("denials", &notes)
		require.Len(t, notes, 1)
	}
	var grid grid.Snapshot
	s.follow()("grid", &grid)
	require.Equal(t, []string{"j", "a"}, grid.Cells)
}

func TestConditionsAreToldWhenTheyChangeAndToWhoComes(t *testing.T) {
	s := serve(t)
	s.service.use(func() { s.service.conditions.File = &File{Name: "headwater.yaml"} })
	next := s.follow()
	told := func(next func(string, any)) (conditions Conditions) {
		next("conditions", &conditions)
		return conditions
	}
	require.Equal(t, "headwater.yaml", told(next).File.Name)
	require.Equal(t, "headwater.yaml", told(s.follow()).File.Name)

	many := make([]Wait, 2*waitsMost)
	s.service.use(func() { s.service.conditions = Conditions{Waits: NewWaits(many)} })
	now := told(next)
	require.Nil(t, now.File, "it was told no second time before it changed")
	require.Len(t, now.Waits.First, waitsMost)
	require.Equal(t, 2*waitsMost, now.Waits.Total)
}

func TestDeliveriesAreSentWhenTheyChange(t *testing.T) {
	s := serve(t, at("one", "a", grid.Current))
	stage := func(name string) {
		s.service.use(func() {
			s.service.deliveries = Deliveries{All: []Delivery{{Rule: "one", Revision: 2, Verdict: "Delivering", Stage: name, Stages: []Stage{{Name: "canary", Namespaces: 1}}}}}
		})
	}
	stage("canary")
	next := s.follow()
	told := func(next func(string, any)) (deliveries Deliveries) {
		next("deliveries", &deliveries)
		return deliveries
	}
	require.Equal(t, "canary", told(next).All[0].Stage)
	require.Equal(t, "canary", told(s.follow()).All[0].Stage)
	var asked int
	s.service.use(func() { asked = s.service.asked })
	next("heartbeat", &struct{}{})
	s.service.use(func() { require.Equal(t, asked, s.service.asked, "nothing is read while nothing changes") })

	stage("rest")
	s.feed.DeliveryChanged()
	require.Equal(t, "rest", told(next).All[0].Stage)
	stage("")
	s.feed.Touched(at("one", "a", grid.Current).Target)
	require.Empty(t, told(next).All[0].Stage, "a clone that changed may change a delivery")
}

func TestWhatIsNotInSyncIsSeenSinceTheSameTimeWhenSomebodyLooksAgain(t *testing.T) {
	service := newService(at("one", "a", grid.Conflict), at("one", "b", grid.Current))
	b := newHub(service, NewFeed())
	defer b.close()
	now := noon
	b.now = func() time.Time { return now }
	look := func(after time.Duration, namespace string) time.Time {
		now = now.Add(after)
		b.running = true
		b.look(new(time.Time))
		since := b.at("one", namespace)[0].Since
		now = now.Add(2 * linger)
		require.True(t, b.abandoned())
		return since
	}
	require.Equal(t, noon, look(0, "a"))
	require.Equal(t, noon, look(time.Hour, "a"), "nobody looked for an hour")
	service.use(func() { service.rules = []string{"one"} })
	require.Equal(t, noon, look(time.Hour, "a"), "the rules are others")
	require.NotEqual(t, noon, look(time.Hour, "b"), "it is in sync, of which there may be many")
	service.use(func() { service.places[at("one", "a", grid.Conflict).Target] = at("one", "a", grid.Failed) })
	require.NotEqual(t, noon, look(time.Hour, "a"), "it stands in another way")
}

func TestQuestionsAreAnswered(t *testing.T) {
	place := at("one", "a", grid.Failed)
	place.Source, place.Reason, place.Why, place.Since = "Secret/p/s", "Missing", "no <room>", noon
	s := serve(t, place, at("two", "a", grid.Current))
	var grid grid.Snapshot
	s.follow()("grid", &grid)
	const want = `{"kind":"Secret","namespace":"a","name":"one-secret","rule":"one","source":"Secret/p/s","state":"failed","reason":"Missing","why":"no <room>","since":"2026-03-01T12:00:00Z","seen":false}`
	_, body := s.get(Path + "/list?rule=&text=&states=")
	require.JSONEq(t, `{"total":1,"hidden":0,"groups":[{"key":"failed Missing no <room>","state":"failed","reason":"Missing","why":"no <room>",
		"total":1,"rules":1,"since":"2026-03-01T12:00:00Z","seen":false,"places":[`+want+`]}]}`, body)
	_, body = s.get(Path + "/list?states=held,refused")
	require.JSONEq(t, `{"total":0,"hidden":0,"groups":[]}`, body)
	_, body = s.get(Path + "/cell?rule=one&namespace=a")
	require.JSONEq(t, "["+want+"]", body)
	response, _ := s.get(Path + "/list?states=splendid")
	require.Equal(t, http.StatusBadRequest, response.StatusCode)
}

func TestThereIsAnEndToOpenPages(t *testing.T) {
	s := serve(t)
	for range viewersMost {
		s.follow()
	}
	response, body := s.get(Path + "/stream")
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	require.Contains(t, body, "too many pages")
}

func TestNothingIsKeptForNobody(t *testing.T) {
	feed := NewFeed()
	feed.Touched(grid.Target{Kind: "Secret", Namespace: "a", Name: "b"})
	targets, _ := feed.takeTouched()
	require.Empty(t, targets)
	for i := range 2 * spreadsMost {
		feed.SpreadBegan("one", fmt.Sprint(i), 1)
		feed.SpreadArrived("one", fmt.Sprint(i), true, true)
		feed.SpreadBegan("one", fmt.Sprint(i), 1)
	}
	require.Len(t, feed.latest(), spreadsMost)
	require.Len(t, feed.begun, spreadsMost)

	b := newHub(newService(at("one", "a", grid.Current)), feed)
	defer b.close()
	b.running = true
	b.look(new(time.Time))
	require.NotNil(t, b.grid)
	require.True(t, b.abandoned(), "nobody has looked for long")
	require.Nil(t, b.grid)
}

func TestAChangeThatNeedsNoWriteDoesNotTakeThePlaceOfOneThatDid(t *testing.T) {
	feed := NewFeed()
	shown := func() []grid.Spread {
		shown := []grid.Spread{}
		for _, spread := range feed.latest() {
			shown = append(shown, grid.Spread{Places: spread.Places, Looked: spread.Looked, Written: spread.Written, Late: spread.Late})
		}
		return shown
	}
	feed.SpreadBegan("one", "Secret/p/s", 2)
	require.Empty(t, shown(), "nothing is written yet")
	feed.SpreadArrived("one", "Secret/p/s", false, false)
	feed.SpreadArrived("one", "Secret/p/s", true, true)
	first := grid.Spread{Places: 2, Looked: 2, Written: 1}
	require.Equal(t, []grid.Spread{first}, shown())

	feed.SpreadBegan("one", "Secret/p/s", 1)
	feed.SpreadArrived("one", "Secret/p/s", false, true)
	require.Equal(t, []grid.Spread{first}, shown())
	feed.SpreadArrived("one", "Secret/p/s", true, false)
	require.Equal(t, []grid.Spread{{Places: 1, Looked: 1, Late: 1}}, shown(), "it had failed, and is the latest that wrote")
}

func TestWhoDoesNotReadIsGivenUp(t *testing.T) {
	v := newViewer()
	for range unread + 2 {
		v.send([]byte("x"))
	}
	require.Eventually(t, func() bool {
		select {
		case <-v.tooSlow:
			return true
		default:
			return false
		}
	}, time.Second, time.Millisecond)
}
