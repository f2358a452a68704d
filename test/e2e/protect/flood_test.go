package protect

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/lab"
	"github.com/headwater-k8s/headwater/test/process"
)

const (
	// floodMemory is the most that Headwater may use, whatever anybody sends.
	floodMemory = 160 << 20
	// floodConnections are more than a port keeps.
	floodConnections = 1200
	// floodPause sets the rate of the flood.
	floodPause = 250 * time.Millisecond
	floodEdits = 200
)

// flood is what a pod without a credential sends, until ctx ends.
type flood struct {
	floodTarget

	client     *http.Client
	dialer     *net.Dialer
	running    sync.WaitGroup
	ctx        context.Context //nolint:containedctx // ends with the flood
	sent, held atomic.Int64
}

// floodTarget has the addresses of Headwater, and the paths of its webhook by what they are about.
type floodTarget struct{ Webhook, Metrics, Sources, Configuration, Marks string }

func newFlood(ctx context.Context, target floodTarget) *flood {
	// Pods have addresses that the kubelet and the API server do not have.
	pod := func(number byte) *net.Dialer {
		return &net.Dialer{Timeout: 5 * time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, number)}}
	}
	return &flood{
		floodTarget: target, dialer: pod(2), ctx: ctx,
		client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, DialContext: pod(3).DialContext,
		}},
	}
}

// floodVariable makes this program a flood of the floodTarget in it, as a process of its own:
// a pod's CPUs are not those of the API server and Headwater.
const floodVariable = "HEADWATER_FLOOD"

// sendFlood sends a flood until standard input ends, and writes how many connections were
// held and requests sent so far.
func sendFlood(target string) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	f := newFlood(ctx, floodTarget{})
	if err := json.Unmarshal([]byte(target), &f.floodTarget); err != nil {
		return err
	}
	f.everything()
	f.repeat(1, floodPause, func() { fmt.Println(f.held.Load(), f.sent.Load()) })
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// flooded has another process, with a lower priority, send a flood until stop is called, and
// returns once it is under way.
func (e *env) flooded(target floodTarget) (stop func()) {
	e.Helper()
	text, err := json.Marshal(target)
	require.NoError(e, err)
	sender := exec.CommandContext(e.Context(), "nice", os.Args[0])
	sender.Env = append(os.Environ(), floodVariable+"="+string(text))
	lasts, err := sender.StdinPipe()
	require.NoError(e, err)
	counts, err := sender.StdoutPipe()
	require.NoError(e, err)
	require.NoError(e, sender.Start())
	stop = sync.OnceFunc(func() {
		_ = lasts.Close()
		_ = sender.Wait()
	})
	e.Cleanup(stop)
	var held, sent int
	for held < floodConnections || sent < 50 {
		_, err := fmt.Fscanln(counts, &held, &sent)
		require.NoError(e, err)
	}
	e.Logf("%d connections and %d requests when it was under way", held, sent)
	return stop
}

// repeat does work over and over, in as many goroutines.
func (f *flood) repeat(goroutines int, pause time.Duration, work func()) {
	for range goroutines {
		f.running.Go(func() {
			for f.ctx.Err() == nil {
				work()
				select {
				case <-f.ctx.Done():
				case <-time.After(pause): // sets the rate of the flood
				}
			}
		})
	}
}

// post sends body to a path of the webhook, without caring for the answer.
func (f *flood) post(path, body string) (status int) {
	request, err := http.NewRequestWithContext(f.ctx, http.MethodPost, "https://"+f.Webhook+path, strings.NewReader(body))
	if err != nil {
		return 0
	}
	request.Header.Set("Content-Type", "application/json")
	f.sent.Add(1)
	answer, err := f.client.Do(request)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode
}

// idle opens connections to address that send start and then nothing, and opens a
// new one for each that is closed.
func (f *flood) idle(address, start string, encrypted bool, connections int) {
	f.repeat(connections, 10*floodPause, func() { f.hold(address, start, encrypted) })
}

func (f *flood) hold(address, start string, encrypted bool) {
	conn, err := f.dialer.DialContext(f.ctx, "tcp", address)
	if err != nil {
		return
	}
	if encrypted {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	}
	leave := context.AfterFunc(f.ctx, func() { _ = conn.Close() })
	defer leave()
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, start); err == nil {
		f.held.Add(1)
		_, _ = io.Copy(io.Discard, conn) // until the server closes it
	}
}

// registeredPath is a path of the webhook as the API server has it.
func (e *env) registeredPath(about string) string {
	e.Helper()
	var path string
	e.Eventually(func(ctx context.Context) error {
		configuration, err := e.Admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, "headwater", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, webhook := range configuration.Webhooks {
			if _, after, found := strings.Cut(*webhook.ClientConfig.URL, "/validate"); found && strings.Contains(after, "/"+about) {
				path = "/validate" + after
			}
		}
		if path == "" {
			return errors.New("no webhook about " + about)
		}
		return nil
	})
	return path
}

// forgedReview is a review of a denied change of an object that does not exist.
func forgedReview(namespace, name, user, uid string) string {
	object := fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":%q,"name":%q,"uid":%q,"labels":{"headwater.dev/clone":"true"}},"type":"Opaque"}`, namespace, name, uid)
	return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u1","kind":{"group":"","version":"v1","kind":"Secret"},`+
		`"resource":{"group":"","version":"v1","resource":"secrets"},"name":%q,"namespace":%q,"operation":"DELETE","userInfo":{"username":%q},"oldObject":%s}}`, name, namespace, user, object)
}

// bomb is a review of Headwater's configuration that is costly to check.
func bomb(text string) string {
	object := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":%q,"name":"headwater"},"data":{"headwater.yaml":%q}}`, lab.Namespace, text)
	return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u1","kind":{"group":"","version":"v1","kind":"ConfigMap"},`+
		`"resource":{"group":"","version":"v1","resource":"configmaps"},"name":"headwater","namespace":%q,"operation":"CREATE","userInfo":{"username":"pod"},"object":%s}}`, lab.Namespace, object)
}

// probe is the kubelet's, with the patience that the chart gives it.
func (e *env) probe(address string) error {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(e.Context(), http.MethodGet, "http://"+address+"/healthz", nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

// refusals has user try edits until the webhook has refused as many, and returns how long
// each took.
func (e *env) refusals(user kubernetes.Interface, namespace string, edits int) []time.Duration {
	e.Helper()
	var took []time.Duration
	for range edits {
		started := time.Now()
		e.Eventually(func(ctx context.Context) error {
			err := lab.TryEdit(ctx, user, namespace, "shared", "x")
			require.Error(e, err)
			return lab.ErrorIf(!strings.Contains(err.Error(), "is protected by rule"), "nobody answered in time: %v", err)
		})
		took = append(took, time.Since(started))
	}
	return took
}

// unjudged is refusals for edits that no webhook judges: the floor.
func (e *env) unjudged(namespace string, edits int) []time.Duration {
	e.Helper()
	var took []time.Duration
	for range edits {
		started := time.Now()
		_, err := e.Admin.CoreV1().ConfigMaps(namespace).Patch(e.Context(), "kube-root-ca.crt", types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{DryRun: dry()})
		require.NoError(e, err)
		took = append(took, time.Since(started))
	}
	return took
}

// slowestHundredth is how long the slowest hundredth took at least.
func slowestHundredth(took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[len(took)*99/100]
}

// everything sends all at once.
func (f *flood) everything() {
	f.idle(f.Webhook, "", true, floodConnections/2)
	reviewOf := func(length int) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", f.Sources, length) + strings.Repeat(" ", 50_000)
	}
	f.idle(f.Webhook, reviewOf(60_000), true, floodConnections/4)
	f.idle(f.Webhook, reviewOf(8_000_000), true, floodConnections/4)
	// Who knows the path is accepted.
	known := forgedReview("kube-system", "forged", "pod", "11111111-2222-3333-4444-555555555555")
	f.idle(f.Webhook, strings.TrimRight(reviewOf(len(known)), " ")+known, true, floodConnections/4)
	f.idle(f.Metrics, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", false, floodConnections/2)
	for _, encoding := range []string{"identity", "gzip", "zstd"} {
		f.idle(f.Metrics, "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept-Encoding: "+encoding+"\r\n\r\n", false, floodConnections/4)
	}
	// Headers that do not end, and a handshake that does not.
	var headers strings.Builder
	for number := range 4000 {
		fmt.Fprintf(&headers, "%x:\r\n", number)
	}
	f.idle(f.Metrics, "GET /healthz HTTP/1.1\r\n"+headers.String(), false, floodConnections/4)
	f.idle(f.Webhook, "GET /healthz HTTP/1.1\r\n"+headers.String()[:8<<10], true, floodConnections/4)
	f.idle(f.Webhook, "\x16\x03\x01\x40\x00\x01\x00\xf0\x00"+strings.Repeat("\x00", 0x4000-4), false, floodConnections/4)
	const head = "apiVersion: headwater.dev/v1alpha1\nkind: Config\n"
	many := head + "rules: [" + strings.Repeat("a,", 49_000) + "a]"
	f.repeat(4, floodPause, func() { f.post(f.Configuration, bomb(many)) })
	f.repeat(2, floodPause, func() { f.post(f.Configuration, bomb("["+strings.Repeat("a,", 3_000_000)+"a]")) })
	f.repeat(4, floodPause, func() { f.post("/validate/configuration", bomb(many)) })
	large := strings.Replace(forgedReview("flood-src", "shared", strings.Repeat("u", 1<<20), ""), `"type"`, `"data":{"k":"`+strings.Repeat("QUFB", 3<<18)+`"},"type"`, 1)
	f.repeat(4, floodPause, func() { f.post(f.Sources, large) })
	f.repeat(4, floodPause, func() { f.post(f.Sources, strings.Replace(large, "DELETE", "UPDATE", 1)) })
	var number atomic.Int64
	f.repeat(4, floodPause, func() {
		f.post(f.Marks, forgedReview("kube-system", fmt.Sprint("forged-", number.Add(1)), "pod", "11111111-2222-3333-4444-555555555555"))
		f.post(f.Sources, forgedReview("flood-src", "shared", "pod", "11111111-2222-3333-4444-555555555555"))
		f.post("/validate/sources", forgedReview("flood-src", "shared", "pod", ""))
	})
}

func TestNoFloodStopsProbesReviewsOrEvents(t *testing.T) {
	e := newEnv(t)
	e.Sections = byTheWebhookAlone
	e.Namespace("flood-src")
	e.Secret("flood-src", "shared", map[string]string{"a": "1"})
	o := e.Options("\n- name: flood\n  source: {kind: Secret, namespace: flood-src, name: shared}\n  protect: {}\n")
	o.LogLevel, o.Env = "info", lab.ChartEnv()
	h := e.Launch(o)
	require.NoError(t, h.Ready(t.Context()))
	e.Grant("", "edit", "flood-mallory")
	e.Grant("", "edit", "flood-trudy")
	mallory, trudy := e.Client("flood-mallory"), e.Client("flood-trudy")
	e.protectedByWebhook(mallory, "flood-src", "shared")
	metrics := strings.TrimPrefix(h.MetricsURL, "http://")
	delays := e.Delays()
	atRest, floor := slowestHundredth(e.refusals(mallory, "flood-src", floodEdits)), slowestHundredth(e.unjudged("flood-src", floodEdits))
	end := e.flooded(floodTarget{h.WebhookAddress(), metrics, e.registeredPath("sources"), e.registeredPath("configuration"), e.registeredPath("marks")})
	var refusals, unjudged []time.Duration
	for range 5 {
		require.NoError(t, e.probe(metrics))
		refusals = append(refusals, e.refusals(trudy, "flood-src", floodEdits/5)...)
		unjudged = append(unjudged, e.unjudged("flood-src", floodEdits/5)...)
	}
	flooded, floodedFloor := slowestHundredth(refusals), slowestHundredth(unjudged)
	began := time.Now()
	event := e.denialIsToldAfter(trudy, "flood-src", "flood-trudy")
	late := delays.Longest(began, time.Now())
	peak, err := process.MemoryBytes(h.PID(), process.Peak)
	require.NoError(t, err)
	t.Logf("at most %d MiB; the slowest hundredth of refusals: %s at rest, %s in the flood; of what no webhook judges: %s and %s; an Event came after %s",
		peak>>20, atRest, flooded, floor, floodedFloor, event)
	require.Less(t, peak, int64(floodMemory))
	if flooded > time.Second && floodedFloor > 100*time.Millisecond {
		e.Inconclusive("a refusal took %s, but what no webhook judges %s", flooded, floodedFloor)
	}
	require.Less(t, flooded, time.Second, "the API server waits five seconds at most")
	if event > time.Second && late > 100*time.Millisecond {
		e.Inconclusive("an Event came after %s, and writes were seen as late as %s", event, late)
	}
	require.LessOrEqual(t, event, time.Second)
	end()
	e.noForgedEvents()
	require.NoError(t, e.probe(metrics))
}

// denialIsToldAfter returns how long after user's edit an Event says that it was refused.
func (e *env) denialIsToldAfter(client kubernetes.Interface, namespace, user string) time.Duration {
	e.Helper()
	events, err := e.Admin.EventsV1().Events(namespace).Watch(e.Context(), metav1.ListOptions{FieldSelector: "reason=Denied"})
	require.NoError(e, err)
	defer events.Stop()
	began, late := time.Now(), time.After(lab.Timeout)
	e.edited(client, namespace)
	for {
		select {
		case event, open := <-events.ResultChan():
			require.True(e, open, "the watch has ended")
			if told, isEvent := event.Object.(*eventsv1.Event); isEvent && strings.Contains(told.Note, user) {
				return time.Since(began)
			}
		case <-late:
			require.Fail(e, "no Event tells of the refusal")
		}
	}
}

// edited has user change the Secret shared, not as a dry run, which is refused.
func (e *env) edited(user kubernetes.Interface, namespace string) {
	e.Helper()
	secret := e.Get(namespace, "shared")
	secret.StringData = map[string]string{"k": "x"}
	e.Eventually(func(ctx context.Context) error { // if nobody answers in time, it is refused all the same
		_, err := user.CoreV1().Secrets(namespace).Update(ctx, secret, metav1.UpdateOptions{})
		require.Error(e, err)
		return lab.Refused(err)
	})
}

// noForgedEvents fails if a forged review had an effect that people see.
func (e *env) noForgedEvents() {
	e.Helper()
	found, err := e.Admin.EventsV1().Events("").List(e.Context(), metav1.ListOptions{})
	require.NoError(e, err)
	require.False(e, slices.ContainsFunc(found.Items, func(event eventsv1.Event) bool {
		return strings.Contains(event.Regarding.Name, "forged") || strings.Contains(event.Note, "by pod")
	}))
}

// Without the segment of the path, nothing of a review is read.
func TestOnlyTheAPIServerIsHeard(t *testing.T) {
	e := newEnv(t)
	e.Sections = byTheWebhookAlone
	e.Namespace("heard-src")
	secret := e.Secret("heard-src", "shared", map[string]string{"a": "1"})
	h := e.Start("\n- name: heard\n  source: {kind: Secret, namespace: heard-src, name: shared}\n  protect: {}\n")
	e.Grant("", "edit", "heard-mallory")
	mallory := e.Client("heard-mallory")
	e.protectedByWebhook(mallory, "heard-src", "shared")
	f := newFlood(t.Context(), floodTarget{Webhook: h.WebhookAddress()})
	sources, configuration := e.registeredPath("sources"), e.registeredPath("configuration")
	for path, want := range map[string]int{
		"/validate/sources":                                       http.StatusServiceUnavailable,
		"/validate/configuration":                                 http.StatusServiceUnavailable,
		"/validate/" + strings.Repeat("0", 32) + "/sources":       http.StatusServiceUnavailable,
		"/validate/" + strings.Repeat("0", 32) + "/configuration": http.StatusServiceUnavailable,
		sources: http.StatusOK,
	} {
		require.Equal(t, want, f.post(path, forgedReview("heard-src", "shared", "pod", string(secret.UID)[:35]+"x")), path)
	}
	require.Equal(t, http.StatusForbidden, f.post(configuration, forgedReview("heard-src", "shared", "pod", "")), "it is about another object")
	large := bomb("[" + strings.Repeat("a,", 4_000_000) + "a]")
	var before, after int64
	before, err := process.MemoryBytes(h.PID(), process.Peak)
	require.NoError(t, err)
	require.NotEqual(t, http.StatusOK, f.post("/validate/configuration", large))
	after, err = process.MemoryBytes(h.PID(), process.Peak)
	require.NoError(t, err)
	require.Less(t, after-before, int64(4<<20), "nothing of it was read")
	e.edited(mallory, "heard-src")
	e.HasEvent("heard-src", "shared", "Denied")
	e.noForgedEvents()
}
