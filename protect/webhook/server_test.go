package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/headwater-k8s/headwater/internal/serve"
	"github.com/headwater-k8s/headwater/protect/certs"
	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/spec"
)

func newTestServer(t *testing.T, drain time.Duration, handler http.Handler) (*Server, *http.Client) {
	t.Helper()
	m := maintain(t, nil, nil, protecttest.Hosts(), time.Now(), certs.TaskRenewCA, certs.TaskRenewLeaf)
	server := NewServer("127.0.0.1:0", drain, handler,
		serve.TLS{}.Config(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return m.Credential().TLS, nil }), zap.NewNop()) // connections outlive the test
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(m.BundlePEM()))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return server, &http.Client{Transport: transport}
}

type reply struct {
	status, proto int
	tls           uint16
	close         bool
}

func send(t *testing.T, client *http.Client, server *Server) reply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		"https://"+server.boundAddress().String()+spec.ReviewPath+"/sources", strings.NewReader(protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, protecttest.OldSecretJSON)))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return reply{answer.StatusCode, answer.ProtoMajor, answer.TLS.Version, answer.Close}
}

func TestServerAnswersReviewsOverTLS(t *testing.T) {
	server, client := newTestServer(t, 0, newTestReviewer(reviewerSetup{}))
	require.False(t, server.Listening())
	require.Nil(t, server.boundAddress())
	protecttest.Background(t, server.Run)
	require.Eventually(t, server.Listening, protecttest.Soon, time.Millisecond)

	answer := send(t, client, server)
	require.Equal(t, http.StatusOK, answer.status)
	require.Equal(t, 1, answer.proto)
	require.GreaterOrEqual(t, answer.tls, uint16(tls.VersionTLS12))
	require.False(t, answer.close)

	_, err := tls.Dial("tcp", server.boundAddress().String(), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11})
	require.Error(t, err)
}

func TestServerNamesTheBusyAddress(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	server := NewServer(taken.Addr().String(), 0, http.NotFoundHandler(), nil, zap.NewNop())
	require.ErrorContains(t, server.Run(t.Context()), "webhook address "+taken.Addr().String()+" is in use")
	require.False(t, server.Listening())
}

func TestServerDrains(t *testing.T) {
	server, client := newTestServer(t, 3*time.Second, newTestReviewer(reviewerSetup{}))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	require.Eventually(t, server.Listening, protecttest.Soon, time.Millisecond)
	require.False(t, send(t, client, server).close)

	stop()
	require.Eventually(t, func() bool { return !server.Listening() }, protecttest.Soon, time.Millisecond)
	answer := send(t, client, server)
	require.Equal(t, http.StatusOK, answer.status, "it serves on while it drains")
	require.True(t, answer.close, "and asks the client to reconnect elsewhere")
	require.NoError(t, <-ended)
	_, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.boundAddress().String())
	require.Error(t, err)
}

func TestServerLetsReviewsInFlightEnd(t *testing.T) {
	arrived, finish := make(chan struct{}), make(chan struct{})
	server, client := newTestServer(t, 0, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-finish
		w.WriteHeader(http.StatusTeapot)
	}))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	require.Eventually(t, server.Listening, protecttest.Soon, time.Millisecond)
	go func() {
		<-arrived
		stop()
		for server.Listening() {
			runtime.Gosched()
		}
		close(finish)
	}()
	require.Equal(t, http.StatusTeapot, send(t, client, server).status)
	require.NoError(t, <-ended)
}

func TestServerLogsFailedHandshakes(t *testing.T) {
	core, logged := observer.New(zapcore.DebugLevel)
	server := NewServer("127.0.0.1:0", 0, http.NotFoundHandler(), serve.TLS{}.Config(func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return nil, errors.New("no certificate yet")
	}), zap.New(core))
	protecttest.Background(t, server.Run)
	require.Eventually(t, server.Listening, protecttest.Soon, time.Millisecond)
	_, err := tls.Dial("tcp", server.boundAddress().String(), &tls.Config{InsecureSkipVerify: true})
	require.Error(t, err)
	require.Eventually(t, func() bool {
		for _, entry := range logged.All() {
			if strings.Contains(entry.Message, "no certificate yet") {
				return true
			}
		}
		return false
	}, protecttest.Soon, time.Millisecond)
}

// The API server calls webhooks with client-go.
func TestTheAPIServerTriesAgainUntilReady(t *testing.T) {
	var asked atomic.Int32
	server, _ := newTestServer(t, 0, newTestReviewer(reviewerSetup{ready: func() bool { return asked.Add(1) > 1 }}))
	protecttest.Background(t, server.Run)
	require.Eventually(t, server.Listening, protecttest.Soon, time.Millisecond)
	client, err := rest.UnversionedRESTClientFor(&rest.Config{
		Host:            "https://" + server.boundAddress().String(),
		TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		ContentConfig:   rest.ContentConfig{NegotiatedSerializer: scheme.Codecs, ContentType: "application/json"},
	})
	require.NoError(t, err)
	answer, err := client.Post().AbsPath(spec.ReviewPath+"/sources").SetHeader("Content-Type", "application/json").
		Body([]byte(protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, protecttest.NewSecretJSON))).DoRaw(t.Context())
	require.NoError(t, err)
	require.Contains(t, string(answer), `"allowed":false`)
	require.EqualValues(t, 2, asked.Load())
}

// An API server may connect before it has a review to send.
func TestAConnectionWaitsForItsFirstReview(t *testing.T) {
	t.Parallel()
	server, _ := newTestServer(t, 0, newTestReviewer(reviewerSetup{}))
	protecttest.Background(t, server.Run)
	require.Eventually(t, server.Listening, protecttest.Soon, time.Millisecond)
	conn, err := tls.Dial("tcp", server.boundAddress().String(), &tls.Config{InsecureSkipVerify: true})
	require.NoError(t, err)
	raw := conn.NetConn()
	require.NoError(t, raw.SetReadDeadline(time.Now().Add(readTimeout+time.Second)))
	_, err = io.Copy(io.Discard, raw) // tickets, then nothing
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "the server does not close it")
	require.NoError(t, raw.SetReadDeadline(time.Time{}))
	body := protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, protecttest.OldSecretJSON)
	_, err = fmt.Fprintf(conn, "POST %s/sources HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", spec.ReviewPath, len(body), body)
	require.NoError(t, err)
}
