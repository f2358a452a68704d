package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	// heartbeat is how often the page gets an event while nothing else changes.
	// The page warns its reader when two of them are missing.
	heartbeat = 5 * time.Second
	// streamLasts bounds a stream, so that the permission is checked again. The page
	// reconnects by itself.
	streamLasts = 5 * time.Minute
	// writeTimeout bounds the write to a browser that does not read.
	writeTimeout = 10 * time.Second
	// unread is how many messages can wait for one browser.
	unread = 64
)

// viewer is one open page.
type viewer struct {
	messages chan []byte
	// tooSlow is closed when messages were lost: the page starts over.
	tooSlow chan struct{}
	once    sync.Once
}

func newViewer() *viewer {
	return &viewer{messages: make(chan []byte, unread), tooSlow: make(chan struct{})}
}

func (v *viewer) send(told []byte) {
	select {
	case v.messages <- told:
	default:
		v.once.Do(func() { close(v.tooSlow) })
	}
}

// message is one server-sent event; see
// https://html.spec.whatwg.org/multipage/server-sent-events.html.
func message(event string, data any) []byte {
	text, err := json.Marshal(data)
	if err != nil {
		panic(fmt.Sprintf("event %s cannot be written as JSON: %v", event, err)) // a programming error, caught by the first test
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", event, text)
}

func (p *Page) stream(w http.ResponseWriter, r *http.Request) {
	v := p.hub.join()
	if v == nil {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many pages are open here; close one", http.StatusServiceUnavailable)
		return
	}
	defer p.hub.leave(v)
	defer func() { _ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) }() // the next request may come by this connection
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would hold it back
	beat, end := time.NewTicker(heartbeat), time.NewTimer(streamLasts)
	defer beat.Stop()
	defer end.Stop()
	told := []byte("retry: 1000\n\n")
	for send(w, told) == nil {
		select {
		case told = <-v.messages:
		case <-beat.C:
			told = message("heartbeat", struct{}{}) // a comment would not reach the page's script
		case <-v.tooSlow:
			return
		case <-end.C:
			return
		case <-r.Context().Done():
			return
		case <-p.hub.ctx.Done():
			return
		}
	}
}

// send writes told and has it sent at once.
func send(w http.ResponseWriter, told []byte) error {
	control := http.NewResponseController(w)
	if err := control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := w.Write(told); err != nil {
		return err
	}
	return control.Flush()
}
