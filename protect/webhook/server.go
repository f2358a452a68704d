package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/serve"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// Timeouts. The API server gives up on a review after 5 s.
const (
	// readTimeout begins when the header of a review was read.
	readTimeout     = 5 * time.Second
	writeTimeout    = 10 * time.Second
	shutdownTimeout = 5 * time.Second
	// maxHeaderBytes is enough for the API server, also with a token for webhooks.
	maxHeaderBytes = 8 << 10
	// idleTimeout is longer than the 90 s of the API server's HTTP client, so that the
	// client closes idle connections, also those on which it has sent nothing yet. If the
	// server closed one, a review sent at that moment would be lost, and the API server
	// does not retry it.
	idleTimeout = 3 * time.Minute
	// maxConnections is several times the reviews that are served at once.
	maxConnections = 256
)

// Server is the HTTPS listener of the webhook.
type Server struct {
	address  string
	drain    time.Duration
	log      *zap.Logger
	server   *http.Server
	limits   *serve.Connections
	config   *tls.Config
	listener atomic.Pointer[net.Listener]
	stopping atomic.Bool
	ended    chan error
}

// NewServer returns a Server for address; Run starts it. config has the
// certificate. drain is how long the server keeps serving after a
// stop is requested, until the Service no longer sends it requests.
func NewServer(address string, drain time.Duration, reviewer http.Handler, config *tls.Config, log *zap.Logger) *Server {
	s := &Server{address: address, drain: drain, log: log, config: config, ended: make(chan error, 1)}
	mux := http.NewServeMux()
	mux.Handle(spec.ReviewPath+"/", reviewer)
	// The API server uses HTTP/1.1 for webhooks. HTTP/2 would only add attack
	// surface.
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	s.server = &http.Server{
		Handler:           mux,
		Protocols:         protocols,
		ReadHeaderTimeout: idleTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          serve.ErrorLog(log),
	}
	// When the server is stopping, it closes each connection after its next response.
	// Closing idle connections at once could lose a review in transit, and the API server
	// does not retry it.
	s.limits = serve.LimitConnections(s.server, maxConnections, func() bool { return !s.stopping.Load() })
	return s
}

// start binds the address and serves in the background until stop. It fails if
// the address cannot be bound.
func (s *Server) start(ctx context.Context) error {
	listener, err := serve.Listen(ctx, s.address, "webhook address", "--webhook-address")
	if err != nil {
		return err
	}
	s.listener.Store(&listener)
	s.log.Info("webhook is listening", zap.Stringer("address", listener.Addr()))
	go func() {
		err := s.server.Serve(s.limits.Listen(listener, s.config))
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		s.ended <- err
	}()
	return nil
}

// stop keeps serving for the drain time, then waits for requests in flight and
// closes. It takes at most 5 s longer than the drain time.
func (s *Server) stop(ctx context.Context) error {
	s.stopping.Store(true)
	if s.drain > 0 {
		s.log.Info(fmt.Sprintf("webhook keeps serving for %s (--webhook-drain), until API servers stop sending requests to this pod", s.drain))
	}
	select {
	case <-time.After(s.drain):
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("stop webhook server: %w", err), s.server.Close())
	}
	return nil
}

// Run serves until ctx ends and then stops gracefully. It fails if the address
// cannot be bound or the listener fails.
func (s *Server) Run(ctx context.Context) error {
	if err := s.start(ctx); err != nil {
		return err
	}
	select {
	case err := <-s.ended:
		s.listener.Store(nil)
		return fmt.Errorf("webhook server ended: %w", err)
	case <-ctx.Done():
		return s.stop(context.WithoutCancel(ctx))
	}
}

// Listening reports whether the server accepts connections.
func (s *Server) Listening() bool { return s.listener.Load() != nil && !s.stopping.Load() }

// boundAddress returns the address that the server is bound to, or nil before
// start.
func (s *Server) boundAddress() net.Addr {
	if listener := s.listener.Load(); listener != nil {
		return (*listener).Addr()
	}
	return nil
}
