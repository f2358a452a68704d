// Package serve serves HTTP: /metrics, /healthz (the process is alive), /readyz
// (all caches have synced), and mounted handlers.
package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
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
	// scrapesMost limits the scrapes that run at once, scrapeTimeout the
	// duration of each, so that slow readers do not accumulate.
	scrapesMost   = 2
	scrapeTimeout = time.Minute
)

// Server is the HTTP server.
type Server struct {
	address string
	checks  []Check
	// certificate is nil if the server uses no TLS.
	certificate Certificate
	paths       []string
	log         *zap.Logger
	server      *http.Server
}

// New returns a Server for address that does not listen yet. With a gate, the
// server uses TLS, so that no token is sent in clear text, and /metrics and the
// mounts require authorization. Without a gate, mounts only answer requests
// from localhost. The root path redirects to the first mount.
func New(address string, registry *prometheus.Registry, checks []Check, gate *Gate, log *zap.Logger, mounts ...Mount) *Server {
	s := &Server{address: address, checks: checks, paths: []string{"/metrics", "/healthz", "/readyz"}, log: log.Named("serve")}
	metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: scrapesMost, Timeout: scrapeTimeout})
	guarded := func(_ string, handler http.Handler) http.Handler { return local(handler) }
	if gate != nil {
		s.certificate = gate.certificate
		metrics, guarded = gate.guard("/metrics", metrics), gate.guard
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { s.write(w, "ok\n") })
	mux.HandleFunc("GET /readyz", s.readyz)
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout, ErrorLog: zap.NewStdLog(s.log)}
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
	return s
}

// Start binds the address and serves in the background.
func (s *Server) Start(ctx context.Context) error {
	listener, err := Listen(ctx, s.address, "metrics address", "--metrics-address")
	if err != nil {
		return err
	}
	if s.certificate != nil {
		if listener, err = overTLS(listener, s.certificate); err != nil {
			return err
		}
	}
	s.log.Info("serving "+strings.Join(s.paths, ", "), zap.Stringer("address", listener.Addr()), zap.Bool("tls", s.certificate != nil))
	go func() {
		if err := s.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
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
