// Package serve serves HTTP: /metrics, /healthz (the process is alive), /readyz
// (all caches have synced), and mounted handlers.
package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
	"k8s.io/utils/clock"
)

// Check is one condition of readiness.
type Check struct {
	Name string
	// Ready returns nil, or what is missing, for display. It must answer from
	// memory.
	Ready func() error
}

// Mount is an additional handler.
type Mount struct {
	// Path is the path that the handler serves, with everything below it.
	Path    string
	Handler http.Handler
	// Close ends requests that do not end by themselves.
	Close func()
}

const (
	headerTimeout   = 5 * time.Second
	shutdownTimeout = 5 * time.Second
	// idleTimeout is for connections that were allowed to read something. Others are
	// closed after the response.
	idleTimeout = 30 * time.Second
	// maxHeaderBytes is enough for a token of an identity provider with many groups.
	maxHeaderBytes = 32 << 10
	// scrapesMost limits the scrapes that are gathered at once, responsesMost those that
	// are sent to their clients, scrapeTimeout the duration of each.
	scrapesMost   = 2
	responsesMost = 16
	scrapeTimeout = 10 * time.Second
	// maxConnections is enough for kubelets, scrapers and browsers.
	maxConnections = 128
)

// Server is the HTTP server.
type Server struct {
	address string
	checks  []Check
	// certificate is nil if the server uses no TLS.
	certificate Certificate
	tls         TLS
	paths       []string
	log         *zap.Logger
	server      *http.Server
	connections *Connections
}

// Options say who may read what, and how.
type Options struct {
	// Gate, if it is not nil, authorizes requests for /metrics and the mounts.
	Gate *Gate
	// TrustLocalhost answers requests for the mounts from localhost if there is no Gate.
	// Otherwise they are refused then.
	TrustLocalhost bool
	// Certificate is served if it is not nil; without it, the server uses no TLS.
	Certificate Certificate
	TLS         TLS
}

// New returns a Server for address that does not listen yet. The root path redirects
// to the first mount.
func New(address string, registry *prometheus.Registry, checks []Check, options Options, log *zap.Logger, mounts ...Mount) *Server {
	s := &Server{
		address: address, checks: checks, certificate: options.Certificate, tls: options.TLS,
		paths: []string{"/metrics", "/healthz", "/readyz"}, log: log.Named("serve"),
	}
	metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: scrapesMost, Timeout: scrapeTimeout, DisableCompression: true})
	metrics = withinRoom(NewRoom(responsesMost, clock.RealClock{}), metrics)
	guarded := func(_ string, handler http.Handler) http.Handler {
		return local(options.TrustLocalhost, accepted(handler))
	}
	if gate := options.Gate; gate != nil {
		metrics = gate.guard("/metrics", accepted(metrics))
		guarded = func(path string, handler http.Handler) http.Handler { return gate.guard(path, accepted(handler)) }
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { s.write(w, "ok\n") })
	mux.HandleFunc("GET /readyz", s.readyz)
	s.server = &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, ErrorLog: ErrorLog(s.log),
	}
	for _, mount := range mounts {
		handler := guarded(mount.Path, mount.Handler)
		s.paths = append(s.paths, mount.Path)
		mux.Handle("GET "+mount.Path, handler)
		mux.Handle("GET "+mount.Path+"/", handler)
		s.server.RegisterOnShutdown(mount.Close)
	}
	if len(mounts) > 0 {
		mux.Handle("GET /{$}", http.RedirectHandler(mounts[0].Path, http.StatusFound))
	}
	s.connections = LimitConnections(s.server, maxConnections, func() bool { return true })
	return s
}

// accepted keeps the connection of requests that reach next.
func accepted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		Accept(w, r)
		next.ServeHTTP(w, r)
	})
}

// withinRoom sends the responses of next, to clients that do not read only until
// others come, or for scrapeTimeout.
func withinRoom(room *Room, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connection := http.NewResponseController(w)
		place := room.Enter(r.Context(), func() { _ = connection.SetWriteDeadline(time.Unix(1, 0)) })
		if place == nil {
			http.Error(w, "too many requests at once", http.StatusServiceUnavailable)
			return
		}
		defer place.Leave()
		_ = connection.SetWriteDeadline(time.Now().Add(scrapeTimeout))
		defer func() { _ = connection.SetWriteDeadline(time.Time{}) }()
		next.ServeHTTP(w, r)
	})
}

// Start binds the address and serves in the background.
func (s *Server) Start(ctx context.Context) error {
	listener, err := Listen(ctx, s.address, "metrics address", "--metrics-address")
	if err != nil {
		return err
	}
	var config *tls.Config
	if s.certificate != nil {
		if config, err = s.tls.orSelfSigned(s.certificate); err != nil {
			return err
		}
	}
	s.log.Info("serving "+strings.Join(s.paths, ", "), zap.Stringer("address", listener.Addr()), zap.Bool("tls", s.certificate != nil))
	go func() {
		if err := s.server.Serve(s.connections.Listen(listener, config)); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("metrics server ended", zap.Error(err))
		}
	}()
	return nil
}

// Stop waits for requests in flight and closes the listener.
func (s *Server) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		return fmt.Errorf("stop metrics server: %w", err)
	}
	return nil
}

// Listen binds a TCP address; what and flag name it in the error.
func Listen(ctx context.Context, address, what, flag string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s %s is in use by another process; choose another with %s", what, address, flag)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return listener, nil
}

func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	var report strings.Builder
	status := http.StatusOK
	for _, check := range s.checks {
		if err := check.Ready(); err != nil {
			status = http.StatusServiceUnavailable
			fmt.Fprintf(&report, "[-] %s: %v\n", check.Name, err)
		} else {
			fmt.Fprintf(&report, "[+] %s\n", check.Name)
		}
	}
	w.WriteHeader(status)
	s.write(w, report.String())
}

func (s *Server) write(w http.ResponseWriter, body string) {
	if _, err := w.Write([]byte(body)); err != nil {
		s.log.Debug("client went away", zap.Error(err))
	}
}

// ErrorLog returns the log of an http.Server. Clients cause what it logs, so it only
// appears at the level debug.
func ErrorLog(log *zap.Logger) *stdlog.Logger {
	quiet, err := zap.NewStdLogAt(log, zap.DebugLevel)
	if err != nil {
		panic(err) // the level exists
	}
	return quiet
}
