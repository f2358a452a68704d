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

// The API server gives up on a review after 5 s.
const (
	headerTimeout   = 5 * time.Second
	readTimeout     = 5 * time.Second
	writeTimeout    = 10 * time.Second
	shutdownTimeout = 5 * time.Second
	maxHeaderBytes  = 64 << 10
	// idleTimeout is longer than that of the API server's client, which is 90 s:
	// on a connection that the server closes a review may be under way, and
	// nobody sends that again.
	idleTimeout = 3 * time.Minute
)

// Server is the HTTPS listener of the webhook.
type Server struct {
	address  string
	drain    time.Duration
	log      *zap.Logger
	server   *http.Server
	listener atomic.Pointer[net.Listener]
	stopping atomic.Bool
	ended    chan error
}

// Certificates returns the serving certificate, as
// tls.Config.GetCertificate does.
type Certificates func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// NewServer returns a Server for address that does not listen yet. The
// certificate is asked for at each handshake. While stopping, it goes on
// serving for drain, so that those who have not heard of it yet are served.
func NewServer(address string, drain time.Duration, reviewer http.Handler, certificate Certificates, log *zap.Logger) *Server {
	s := &Server{address: address, drain: drain, log: log, ended: make(chan error, 1)}
	mux := http.NewServeMux()
	mux.Handle(spec.ReviewPath, reviewer)
	mux.Handle(spec.ReviewPath+"/", reviewer)
	// The API server speaks HTTP/1.1 to webhooks; HTTP/2 would be attack
	// surface only.
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	s.server = &http.Server{
		Handler:           s.closing(mux),
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate},
		Protocols:         protocols,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          zap.NewStdLog(log),
	}
	return s
}

// closing ends each connection after the reply in flight once the server is
// stopping. Closing idle connections at once would cut off a review that is on
// its way, and the API server does not send it again.
func (s *Server) closing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.stopping.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// start binds the address and serves in the background until Stop. It fails
// when the address cannot be bound.
func (s *Server) start(ctx context.Context) error {
	listener, err := serve.Listen(ctx, s.address, "webhook address", "--webhook-address")
	if err != nil {
		return err
	}
	s.listener.Store(&listener)
	s.log.Info("webhook listens", zap.Stringer("address", listener.Addr()))
	go func() {
		err := s.server.ServeTLS(listener, "", "")
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		s.ended <- err
	}()
	return nil
}

// stop goes on serving for the drain time, then lets requests in flight end
// and closes. It takes at most 5 s longer than the drain time.
func (s *Server) stop(ctx context.Context) error {
	s.stopping.Store(true)
	if s.drain > 0 {
		s.log.Info(fmt.Sprintf("the webhook serves on for %s (--webhook-drain), for those who have not heard yet that it stops", s.drain))
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

// Run serves until ctx ends and then stops gracefully. It fails when the
// address cannot be bound, or when the listener breaks.
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

// boundAddress is what the server is bound to; nil before Start.
func (s *Server) boundAddress() net.Addr {
	if listener := s.listener.Load(); listener != nil {
		return (*listener).Addr()
	}
	return nil
}
