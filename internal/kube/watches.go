package kube

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// Watches knows which resources this process watches now, by their open responses.
// client-go tries a broken watch again without telling anybody. It is safe for concurrent
// use.
type Watches struct {
	now func() time.Time

	mu   sync.Mutex
	open map[string]int
	// closedAt is when the last watch of a resource ended that has none now.
	closedAt map[string]time.Time
}

func newWatches() *Watches {
	return &Watches{now: time.Now, open: map[string]int{}, closedAt: map[string]time.Time{}}
}

// Lost returns the first of resources that has not been watched for so long; empty if there
// is none. For one that was never watched, the time counts from the first call. API servers end each watch
// after some minutes, and the next one continues where it ended. Without a connection of
// their own, as fake clients, w is nil and nothing is lost.
func (w *Watches) Lost(resources []string, after time.Duration) string {
	if w == nil {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, resource := range resources {
		if _, known := w.closedAt[resource]; !known {
			w.closedAt[resource] = w.now()
		}
		if w.open[resource] == 0 && w.now().Sub(w.closedAt[resource]) >= after {
			return resource
		}
	}
	return ""
}

func (w *Watches) count(resource string, by int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open[resource] += by; w.open[resource] == 0 {
		w.closedAt[resource] = w.now()
	}
}

// watchingTransport is a transport that tells Watches what it watches.
type watchingTransport struct {
	next    http.RoundTripper
	watches *Watches
}

// RoundTrip implements http.RoundTripper.
func (t watchingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	resource, named := resourceOf(request.URL.Path)
	if err == nil && response.StatusCode == http.StatusOK && verbOf(request, named) == "watch" {
		t.watches.count(resource, 1)
		response.Body = &watchBody{ReadCloser: response.Body, ended: sync.OnceFunc(func() { t.watches.count(resource, -1) })}
	}
	return response, err
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
