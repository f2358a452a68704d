package serve

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWithoutAGateOnlyLocalhostIsAnswered(t *testing.T) {
	for name, tc := range map[string]struct {
		peer, host string
		want       int
	}{
		"a port-forward":                             {"127.0.0.1:40000", "localhost:8080", http.StatusOK},
		"a port-forward over IPv6":                   {"[::1]:40000", "[::1]:8080", http.StatusOK},
		"IPv4 on a listener of both":                 {"[::ffff:127.0.0.1]:40000", "127.0.0.1:8080", http.StatusOK},
		"a Host without a port":                      {"127.0.0.1:40000", "LOCALHOST", http.StatusOK},
		"an IPv6 Host without a port":                {"[::1]:40000", "[::1]", http.StatusOK},
		"another pod":                                {"10.1.2.3:40000", "10.9.9.9:8080", http.StatusForbidden},
		"another pod that calls it localhost":        {"10.1.2.3:40000", "localhost:8080", http.StatusForbidden},
		"a website whose name was made to lead here": {"127.0.0.1:40000", "evil.example:8080", http.StatusForbidden},
		"a name that begins like localhost":          {"127.0.0.1:40000", "localhost.evil.example", http.StatusForbidden},
		"no Host":                                    {"127.0.0.1:40000", "", http.StatusForbidden},
		"a peer without an address":                  {"@", "localhost:8080", http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/page", nil)
			request.RemoteAddr, request.Host = tc.peer, tc.host
			answer := httptest.NewRecorder()
			local(true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })).ServeHTTP(answer, request)
			require.Equal(t, tc.want, answer.Code)
			if tc.want == http.StatusForbidden {
				require.Contains(t, answer.Body.String(), "kubectl port-forward")
				require.Contains(t, answer.Body.String(), "--metrics-auth")
			}
		})
	}
}

// A proxy in the pod looks like a port-forward.
func TestLocalhostIsNoProofUnlessSomebodySaysSo(t *testing.T) {
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/page", nil)
	request.RemoteAddr, request.Host = "127.0.0.1:40000", "localhost:8080"
	answer := httptest.NewRecorder()
	local(false, http.NotFoundHandler()).ServeHTTP(answer, request)
	require.Equal(t, http.StatusForbidden, answer.Code)
	require.Contains(t, answer.Body.String(), "--metrics-auth")
	require.Contains(t, answer.Body.String(), "--page-localhost")
}
