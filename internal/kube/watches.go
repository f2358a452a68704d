package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/headwater-k8s/headwater/internal/text"
)

// Watches knows which caches of this process are kept current, by the open responses to
// their watches: client-go repeats some refused requests without telling anybody. It is
// safe for concurrent use.
type Watches struct {
	now func() time.Time

	mu sync.Mutex
	of map[string]*watched
}

// watched is what is known of the watch of one cache.
type watched struct {
	// by is what fills the cache; nil before its first request.
	by   *reading
	open int
	// openedAt is when the first of the open responses began to follow changes.
	openedAt time.Time
	// closedAt is when the last steady one ended.
	closedAt time.Time
	resource string
	// why is the latest refusal or failure.
	why string
}

const (
	// steadyAfter is for how long a watch must be open to count: an API server that cannot
	// read an object may begin to answer.
	steadyAfter = 2 * time.Second
	// maxWhy bounds Loss.Why, in bytes, and maxStatus the answer that it is read from.
	maxWhy, maxStatus = 256, 8 << 10
)

// Loss says that a cache is not kept current.
type Loss struct {
	// Cache is the name of the cache, and Resource what it holds, such as secrets.
	Cache, Resource string
	Since           time.Time
	// Why is the latest answer or error; empty if there was none.
	Why string
}

// String describes the loss, with its time in UTC.
func (l *Loss) String() string {
	why := l.Why
	if why == "" {
		why = "no answer says why"
	}
	return fmt.Sprintf("%s since %s (%s): %s", l.Resource, l.Since.UTC().Format(time.RFC3339), l.Cache, why)
}

// reading is one run of a cache.
type reading struct {
	cache string
	ended atomic.Bool
}

type readingKey struct{}

// Reading returns a context for the lists and watches that fill the cache of that name until
// ctx ends.
func Reading(ctx context.Context, cache string) context.Context {
	one := &reading{cache: cache}
	context.AfterFunc(ctx, func() { one.ended.Store(true) })
	return context.WithValue(ctx, readingKey{}, one)
}

func newWatches() *Watches { return &Watches{now: time.Now, of: map[string]*watched{}} }

// Lost returns the losses of those of caches that have not been watched for so long, which
// must be more than steadyAfter. For one that was never watched, or whose earlier reading has
// ended, the time counts from the first call. API servers end each watch after some minutes,
// and the next one continues where it ended. Without a connection of their own, as fake
// clients, w is nil and nothing is lost.
func (w *Watches) Lost(caches []string, after time.Duration) (lost []*Loss) {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	for _, name := range caches {
		one := w.one(name, nil)
		if !one.isSteady(now) && now.Sub(one.closedAt) >= after {
			lost = append(lost, &Loss{Cache: name, Resource: one.resource, Since: one.closedAt, Why: one.why})
		}
	}
	return lost
}

// one returns what is known of a cache that by fills; nil if that is not known. The caller
// holds the lock.
func (w *Watches) one(name string, by *reading) *watched {
	one := w.of[name]
	if one == nil || one.by != nil && (one.by.ended.Load() || by != nil && by != one.by) {
		one = &watched{closedAt: w.now(), resource: name}
		w.of[name] = one
	}
	if by != nil {
		one.by = by
	}
	return one
}

// isSteady reports whether the cache has been watched for steadyAfter at that time.
func (o *watched) isSteady(now time.Time) bool {
	return o.open > 0 && now.Sub(o.openedAt) >= steadyAfter
}

// change calls change for what is known of the cache that by fills.
func (w *Watches) change(by *reading, change func(one *watched, now time.Time)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.of[by.cache]
	if !by.ended.Load() {
		one = w.one(by.cache, by)
	} else if one == nil || one.by != by { // something else fills it by now
		return
	}
	change(one, w.now())
}

// FirstLost is Lost for the first loss alone; nil if there is none.
func (w *Watches) FirstLost(caches []string, after time.Duration) *Loss {
	if lost := w.Lost(caches, after); len(lost) > 0 {
		return lost[0]
	}
	return nil
}

func opened(one *watched, now time.Time) {
	if one.open++; one.open == 1 {
		one.openedAt = now
	}
}

func closed(one *watched, now time.Time) {
	if one.open == 1 && one.isSteady(now) {
		one.closedAt, one.why = now, ""
	}
	one.open--
}

// failed records why a list or watch failed.
func failed(why string) func(*watched, time.Time) {
	return func(one *watched, _ time.Time) { one.why = text.Truncate(why, maxWhy) }
}

// watchingTransport is a transport that tells Watches what comes of the requests that fill
// caches.
type watchingTransport struct {
	next    http.RoundTripper
	watches *Watches
}

// RoundTrip implements http.RoundTripper.
func (t watchingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	by, fills := request.Context().Value(readingKey{}).(*reading)
	if !fills {
		return t.next.RoundTrip(request)
	}
	resource, named := resourceOf(request.URL.Path)
	t.watches.change(by, func(one *watched, _ time.Time) { one.resource = resource })
	response, err := t.next.RoundTrip(request)
	switch {
	case errors.Is(err, context.Canceled):
	case err != nil:
		t.watches.change(by, failed(err.Error()))
	case response.StatusCode >= http.StatusBadRequest:
		t.watches.change(by, failed(refusal(response)))
	case verbOf(request, named) == "watch":
		body := &watchBody{ReadCloser: response.Body, watches: t.watches, by: by}
		if !strings.Contains(request.URL.RawQuery, "sendInitialEvents=true") {
			body.follows()
		}
		response.Body = body
	}
	return response, err
}

// refusal returns what response says of why the API server refused, and leaves it to be read
// once more. It returns the message only where a right is missing: others may quote an object
// that cannot be decoded.
func refusal(response *http.Response) string {
	why := "the API server answers " + response.Status
	if response.StatusCode != http.StatusForbidden && response.StatusCode != http.StatusUnauthorized {
		return why
	}
	begin, err := io.ReadAll(io.LimitReader(response.Body, maxStatus))
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(begin), response.Body), response.Body}
	if err != nil {
		return why
	}
	decoded, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), begin)
	if status, ok := decoded.(*metav1.Status); err == nil && ok && status.Message != "" {
		return why + ": " + status.Message
	}
	return why
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (t watchingTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// initialEventsEnd is the annotation of the event after which a watch that began with a list
// follows changes, in every encoding; see KEP-3157.
var initialEventsEnd = []byte(metav1.InitialEventsAnnotationKey)

// watchBody tells Watches since when a response follows changes, and when it ends.
type watchBody struct {
	io.ReadCloser

	watches *Watches
	by      *reading
	// before is the end of what was read before, as long as the list has not ended.
	before []byte

	mu               sync.Mutex
	following, ended bool
}

// Read implements io.Reader.
func (b *watchBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if !b.isFollowing() && b.endsList(p[:n]) {
		b.follows()
	}
	if err != nil {
		b.end()
	}
	return n, err
}

// endsList reports whether the list ends in what was read now, which may have begun before.
func (b *watchBody) endsList(now []byte) bool {
	size := len(initialEventsEnd)
	border := append(b.before, now[:min(len(now), size)]...) //nolint:gocritic // before is replaced
	if bytes.Contains(now, initialEventsEnd) || bytes.Contains(border, initialEventsEnd) {
		return true
	}
	if len(now) > size {
		border = append(border[:0], now[len(now)-size:]...)
	}
	b.before = border[max(0, len(border)-size):]
	return false
}

// Close implements io.Closer.
func (b *watchBody) Close() error {
	b.end()
	return b.ReadCloser.Close()
}

func (b *watchBody) isFollowing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.following
}

func (b *watchBody) follows() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.following && !b.ended {
		b.following = true
		b.watches.change(b.by, opened)
	}
}

func (b *watchBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.following && !b.ended {
		b.watches.change(b.by, closed)
	}
	b.ended = true
}
