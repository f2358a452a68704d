package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
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
	open int
	// openedAt is when the first of the open responses began.
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
		why = "the API server does not answer"
	}
	return fmt.Sprintf("%s since %s (%s): %s", l.Resource, l.Since.UTC().Format(time.RFC3339), l.Cache, why)
}

type cacheName struct{}

// Reading returns a context for the lists and watches that fill the cache of that name.
func Reading(ctx context.Context, cache string) context.Context {
	return context.WithValue(ctx, cacheName{}, cache)
}

func newWatches() *Watches { return &Watches{now: time.Now, of: map[string]*watched{}} }

// Lost returns the loss of the first of caches that has not been watched for so long, which
// must be more than steadyAfter, and nil if there is none. For one that was never watched, the time counts from the first call. API servers end each watch after some
// minutes, and the next one continues where it ended. Without a connection of their own, as
// fake clients, w is nil and nothing is lost.
func (w *Watches) Lost(caches []string, after time.Duration) *Loss {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	for _, name := range caches {
		one := w.one(name)
		if !one.isSteady(now) && now.Sub(one.closedAt) >= after {
			return &Loss{Cache: name, Resource: one.resource, Since: one.closedAt, Why: one.why}
		}
	}
	return nil
}

// one returns what is known of a cache. The caller holds the lock.
func (w *Watches) one(name string) *watched {
	if w.of[name] == nil {
		w.of[name] = &watched{closedAt: w.now(), resource: name}
	}
	return w.of[name]
}

// isSteady reports whether the cache has been watched for steadyAfter at that time.
func (o *watched) isSteady(now time.Time) bool {
	return o.open > 0 && now.Sub(o.openedAt) >= steadyAfter
}

func (w *Watches) opened(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.one(name)
	if one.open++; one.open == 1 {
		one.openedAt = w.now()
	}
}

func (w *Watches) closed(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one, now := w.one(name), w.now()
	if one.open == 1 && one.isSteady(now) {
		one.closedAt, one.why = now, ""
	}
	one.open--
}

// failed records why a list or watch failed.
func (w *Watches) failed(name, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.one(name).why = text.Truncate(why, maxWhy)
}

// watchingTransport is a transport that tells Watches what comes of the requests that fill
// caches.
type watchingTransport struct {
	next    http.RoundTripper
	watches *Watches
}

// RoundTrip implements http.RoundTripper.
func (t watchingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	name, fills := request.Context().Value(cacheName{}).(string)
	if !fills {
		return t.next.RoundTrip(request)
	}
	resource, named := resourceOf(request.URL.Path)
	t.watches.asked(name, resource)
	response, err := t.next.RoundTrip(request)
	switch {
	case errors.Is(err, context.Canceled):
	case err != nil:
		t.watches.failed(name, err.Error())
	case response.StatusCode >= http.StatusBadRequest:
		t.watches.failed(name, refusal(response))
	case verbOf(request, named) == "watch":
		t.watches.opened(name)
		response.Body = &watchBody{ReadCloser: response.Body, ended: sync.OnceFunc(func() { t.watches.closed(name) })}
	}
	return response, err
}

func (w *Watches) asked(name, resource string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.one(name).resource = resource
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

// watchBody calls ended when the response ends.
type watchBody struct {
	io.ReadCloser

	ended func()
}

// Read implements io.Reader.
func (b *watchBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.ended()
	}
	return n, err
}

// Close implements io.Closer.
func (b *watchBody) Close() error {
	b.ended()
	return b.ReadCloser.Close()
}
