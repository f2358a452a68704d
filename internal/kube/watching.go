package kube

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

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
	isWatch, beginsWithList := verbOf(request, named) == "watch", strings.Contains(request.URL.RawQuery, "sendInitialEvents=true")
	why := ""
	switch {
	case errors.Is(err, context.Canceled):
	case err != nil:
		why = err.Error()
	case response.StatusCode >= http.StatusBadRequest:
		why = refusal(response)
	case isWatch:
		body := &watchBody{ReadCloser: response.Body, watches: t.watches, by: by}
		if !beginsWithList {
			body.follows()
		}
		response.Body = body
	default:
		response.Body = listBody{response.Body, t.watches, by}
	}
	if why != "" {
		t.watches.change(by, failed(why))
		if isWatch && !beginsWithList {
			t.watches.change(by, tried)
		}
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

// listBody tells Watches that a list is being read.
type listBody struct {
	io.ReadCloser

	watches *Watches
	by      *reading
}

// Read implements io.Reader.
func (b listBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.watches.change(b.by, advanced)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.watches.change(b.by, tried)
	}
	return n, err
}

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
	if n > 0 && !b.isFollowing() {
		b.watches.change(b.by, advanced)
		if b.endsList(p[:n]) {
			b.follows()
		}
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
	switch {
	case b.following && !b.ended:
		b.watches.change(b.by, closed)
	case !b.ended:
		b.watches.change(b.by, tried)
	}
	b.ended = true
}
