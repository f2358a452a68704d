package webhook

import (
	"net/url"
	"strings"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/spec"
)

const (
	// lagging is how long a path is accepted after it was last seen registered, because
	// an API server may use an older webhook configuration.
	lagging = 10 * time.Minute
	// maxSegments is how many segments are remembered.
	maxSegments = 16
)

// Paths knows the paths that the API server sends reviews to. They contain a segment
// that only the API server and Headwater know, see spec.Endpoint.Segment, so other
// clients are refused before anything of a review is read. The segment is in errors of
// the API server: this is a filter, not an authentication.
//
// A version of Headwater without segments may have registered the webhook. Its paths
// are accepted while they are registered, and for a while longer.
type Paths struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// own is the segment that this replica would register.
	own string
	// registered is when each segment was last seen in the webhook configuration. The
	// empty one is that of paths without a segment.
	registered map[string]time.Time
	current    map[string]bool
}

// NewPaths returns Paths that accept none yet.
func NewPaths(clk clock.PassiveClock) *Paths {
	return &Paths{clock: clk, registered: map[string]time.Time{}}
}

// Expect takes the segment that this replica would register, before it or another
// replica does.
func (p *Paths) Expect(segment string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.own = segment
}

// Registered takes the paths of a webhook configuration, which is nil if none exists.
func (p *Paths) Registered(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	for segment := range p.current {
		p.registered[segment] = now // until now
	}
	p.current = map[string]bool{}
	if configuration != nil {
		for _, webhook := range configuration.Webhooks {
			path := pathOf(webhook.ClientConfig)
			if !strings.Contains(path, spec.ReviewPath+"/") { // --webhook-url may have a path before that
				continue
			}
			segment, _ := parsePath(path)
			p.current[segment], p.registered[segment] = true, now
		}
	}
	for len(p.registered) > maxSegments {
		oldest := ""
		for segment, at := range p.registered {
			if oldest == "" || at.Before(p.registered[oldest]) {
				oldest = segment
			}
		}
		delete(p.registered, oldest)
	}
}

// ScopeAt returns what the webhook with this path checks. It returns false if the path
// is not registered.
func (p *Paths) ScopeAt(path string) (scope decide.Scope, isRegistered bool) {
	segment, scope := parsePath(path)
	p.mu.Lock()
	defer p.mu.Unlock()
	last, seen := p.registered[segment]
	isExpected := segment != "" && segment == p.own
	return scope, isExpected || p.current[segment] || seen && p.clock.Since(last) < lagging
}

func pathOf(client admissionregistrationv1.WebhookClientConfig) string {
	switch {
	case client.Service != nil && client.Service.Path != nil:
		return *client.Service.Path
	case client.URL != nil:
		if parsed, err := url.Parse(*client.URL); err == nil {
			return parsed.Path
		}
	}
	return ""
}

// parsePath returns the segment of a path, or "" if it has none, and what its webhook
// checks.
func parsePath(path string) (segment string, scope decide.Scope) {
	_, rest, _ := strings.Cut(path, spec.ReviewPath+"/")
	if first, after, _ := strings.Cut(rest, "/"); spec.IsSegment(first) {
		return first, decide.ScopeAt(spec.ReviewPath + "/" + after)
	}
	return "", decide.ScopeAt(path)
}
