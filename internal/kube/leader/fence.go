package leader

import (
	"context"
	"fmt"
	"net/http"
)

type fenceKey struct{}

// fenced has no write leave that is asked for within the returned context once
// held says no. A process that stood still for longer than its lease, and goes on
// in the middle of its work, writes nothing from what it remembers.
func fenced(ctx context.Context, held func() bool) context.Context {
	return context.WithValue(ctx, fenceKey{}, held)
}

// Fence is what keeps such writes back, at the last moment there is.
type Fence struct{ Next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (f Fence) RoundTrip(request *http.Request) (*http.Response, error) {
	held, within := request.Context().Value(fenceKey{}).(func() bool)
	if !within || request.Method == http.MethodGet || held() {
		return f.Next.RoundTrip(request)
	}
	if request.Body != nil {
		_ = request.Body.Close()
	}
	return nil, fmt.Errorf("not sent: %w", errLeaseLost)
}

// WrappedRoundTripper lets client-go find its own transport in this one.
func (f Fence) WrappedRoundTripper() http.RoundTripper { return f.Next }
