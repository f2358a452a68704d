package leader

import (
	"context"
	"fmt"
	"net/http"
)

type fenceKey struct{}

// fenced returns a context whose writes fail with errLeaseLost once held returns
// false. A process that was suspended for longer than its lease therefore writes
// nothing when it resumes.
func fenced(ctx context.Context, held func() bool) context.Context {
	return context.WithValue(ctx, fenceKey{}, held)
}

// Fence is a transport that rejects the writes of a fenced context.
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

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (f Fence) WrappedRoundTripper() http.RoundTripper { return f.Next }
