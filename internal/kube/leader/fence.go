package leader

import (
	"context"
	"fmt"
	"net/http"
)

type fenceKey struct{}

// fence belongs to a context. lose ends that context.
type fence struct {
	held func() bool
	lose func()
}

// fenced returns a context whose writes fail with errLeaseLost once held returns
// false. A process that was suspended for longer than its lease therefore writes
// nothing when it resumes. The first such write calls lose, which ends ctx, so that
// nobody takes the loss of the lease for a failure of what was written.
func fenced(ctx context.Context, held func() bool, lose func()) context.Context {
	return context.WithValue(ctx, fenceKey{}, fence{held, lose})
}

// Fence is a transport that rejects the writes of a fenced context.
type Fence struct{ Next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (f Fence) RoundTrip(request *http.Request) (*http.Response, error) {
	by, within := request.Context().Value(fenceKey{}).(fence)
	if !within || request.Method == http.MethodGet {
		return f.Next.RoundTrip(request)
	}
	if by.held() {
		response, err := f.Next.RoundTrip(request)
		if err != nil && !by.held() { // suspended meanwhile
			by.lose()
		}
		return response, err
	}
	by.lose()
	if request.Body != nil {
		_ = request.Body.Close()
	}
	return nil, fmt.Errorf("not sent: %w", errLeaseLost)
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (f Fence) WrappedRoundTripper() http.RoundTripper { return f.Next }
