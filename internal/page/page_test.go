package page

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
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
	// version counts the calls of set, and changed are the namespaces of their places.
	version uint64
	changed map[string]uint64

	conditions Conditions
	deliveries Deliveries
	// asked is how often the deliveries were read.
	asked int
}

func newService(places ...grid.Place) *service {
	s := &service{standing: Leadership{Here: true}, rules: []string{"one", "two"}, places: map[grid.Target]grid.Place{}, changed: map[string]uint64{}}
	for _, place := range places {
		s.set(place)
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

// set has place stand so.
func (s *service) set(place grid.Place) {
	s.use(func() {
		s.version++
		s.places[place.Target], s.changed[place.Namespace] = place, s.version
	})
}

func (s *service) Changes(version uint64, report func(string)) (now uint64, all bool) {
	s.use(func() {
		now = s.version
		for namespace, changed := range s.changed {
			if changed > version {
				report(namespace)
			}
		}
	})
	return now, version == 0
}

func (s *service) Rules() (rules []string) {
	s.use(func() {
		rules = slices.Clone(s.rules)
		for _, place := range s.places {
			if !slices.Contains(rules, place.Rule) {
				rules = append(rules, place.Rule)
			}
		}
	})
	return rules
}

func (s *service) Places(namespace string, wanted func(string, grid.State) bool, report func(grid.Place)) {
	s.use(func() {
		for _, place := range s.places {
			if (namespace == "" || namespace == place.Namespace) && wanted(place.Rule, place.State) {
				report(place)
			}
		}
	})
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
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
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
	s := serve(t, at("one", "a", grid.Behind), at("two", "b", grid.Current))
	next := s.follow()
	var standing Leadership
	next("standing", &standing)
	require.True(t, standing.Here)
	var cells grid.Snapshot
	next("grid", &cells)
	require.Equal(t, []string{"one", "two"}, cells.Rules)
	require.ElementsMatch(t, []string{"a", "b"}, cells.Namespaces)

	s.service.set(at("one", "a", grid.Current))
	var delta grid.Delta
	next("delta", &delta)
	require.Len(t, delta.Cells[0], 2)
	require.Equal(t, int(grid.Current), delta.Cells[0][1])
	happened := map[string][]grid.Note{}
	s.feed.Happened(grid.Note{What: "Denied", Names: []string{"Secret/p/s"}})
	next("happened", &happened)
	require.Equal(t, []string{"Secret/p/s"}, happened["Denied"][0].Names)
	clear(happened)
	s.feed.Happened(grid.Note{What: "RulesNotCompared", Names: []string{"Namespace/own"}})
	next("happened", &happened)
	require.NotContains(t, happened, "Denied", "nothing is sent again")
	require.Equal(t, []string{"Namespace/own"}, happened["RulesNotCompared"][0].Names)

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
	next("heartbeat", &struct{}{})
	next("heartbeat", &struct{}{})
}

func TestWhoComesLaterIsToldEverything(t *testing.T) {
	s := serve(t, at("one", "a", grid.Conflict))
	s.feed.Happened(grid.Note{What: "Denied", Names: []string{"Secret/p/s"}})
	s.feed.Happened(grid.Note{What: "Propagated", Names: []string{"Secret/p/s"}})
	for range 2 {
		var happened map[string][]grid.Note
		s.follow()("happened", &happened)
		require.Len(t, happened, 2)
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
	s.service.set(at("one", "a", grid.Behind))
	require.Empty(t, told(next).All[0].Stage, "a clone that changed may change a delivery")
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
	b := newHub(newService(at("one", "a", grid.Current)), feed)
	defer b.close()
	b.running = true
	b.look()
	require.NotNil(t, b.grid)
	require.True(t, b.abandoned(), "nobody has looked for long")
	require.Nil(t, b.grid)
}

func TestManyOfOneKindDoNotTakeThePlaceOfOthers(t *testing.T) {
	feed := NewFeed()
	noon := time.Now()
	feed.now = func() time.Time { noon = noon.Add(time.Minute); return noon }
	feed.Happened(grid.Note{What: "StagePassed", Names: []string{"Secret/p/s"}})
	for i := range 1000 { // as somebody does who wants to hide something
		feed.Happened(grid.Note{What: "Denied", Names: []string{fmt.Sprint(i)}})
	}
	require.Len(t, feed.happened["StagePassed"].Notes(), 1)
	require.Less(t, len(feed.happened["Denied"].Notes()), 100)
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
