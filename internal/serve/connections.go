package serve

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	stdlog "log"
	"math"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/lru"
)

// maxHeaderLines limits a header. A line takes many times its bytes in memory.
const maxHeaderLines = 100

var errHeader = errors.New("the header has too many lines")

// Connections limits the connections of one server. A new one is never refused: another
// is closed, of the address that has most, so that a flood closes its own. Those of
// addresses that sent an accepted request are closed last, while these have few.
type Connections struct {
	most int
	keep func() bool
	log  *stdlog.Logger
	// handshakes limits those of one address, furtherHandshakes those beyond.
	handshakes        *lru.Cache
	furtherHandshakes *rate.Limiter

	mu      sync.Mutex
	all     map[*connection]struct{}
	senders map[string]*sender
}

// sender is an address that has connections.
type sender struct{ connections, accepted int }

// connection is a TCP connection, or TLS on one.
type connection struct {
	stream

	limits  *Connections
	tcp     *net.TCPConn
	address string
	from    *sender
	ctx     context.Context //nolint:containedctx // ends with the connection
	leave   context.CancelFunc
	// active is when the connection began or a handler ended.
	active               time.Time
	isAccepted, isServed bool

	// lines counts those since the last handler; it is negative while a handler runs,
	// which limits what it reads itself.
	lines atomic.Int64
	// handshake is nil without TLS.
	handshake *handshake
}

type stream interface {
	net.Conn
	CloseWrite() error
}

// servedLines is less than any number of lines that a handler reads.
const servedLines = math.MinInt64 / 2

type connectionKey struct{}

// LimitConnections limits the connections of server to most. The server must serve the
// result's listener, one only. It closes each connection after a response, unless its
// handler called Accept while keep returned true.
func LimitConnections(server *http.Server, most int, keep func() bool) *Connections {
	c := &Connections{
		most: most, keep: keep, log: server.ErrorLog, all: map[*connection]struct{}{}, senders: map[string]*sender{},
		handshakes: lru.New(maxAddresses), furtherHandshakes: rate.NewLimiter(furtherHandshakesPerSecond, 1),
	}
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		accepted, _ := conn.(*connection)
		accepted.ctx, accepted.leave = context.WithCancel(context.WithValue(ctx, connectionKey{}, accepted))
		return accepted.ctx
	}
	next := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		if served, limited := r.Context().Value(connectionKey{}).(*connection); limited {
			c.serve(served, true)
			defer c.serve(served, false)
		}
		next.ServeHTTP(w, r)
	})
	return c
}

// Accept says that r is a request that the server is for, so that its connection is
// kept. Call it before the response is written.
func Accept(w http.ResponseWriter, r *http.Request) {
	if served, limited := r.Context().Value(connectionKey{}).(*connection); limited {
		served.limits.accept(served)
		if served.limits.keep() {
			w.Header().Del("Connection")
		}
	}
}

// listener accepts connections of a TCP listener.
type listener struct {
	net.Listener

	limits *Connections
	config *tls.Config
}

// Listen returns a listener for the server, which encrypts with config if it is not nil.
func (c *Connections) Listen(tcp net.Listener, config *tls.Config) net.Listener {
	if config != nil {
		config = config.Clone()
		config.GetConfigForClient = c.pace
	}
	return listener{tcp, c, config}
}

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tcp, _ := conn.(*net.TCPConn)
	added := &connection{stream: tcp, limits: l.limits, tcp: tcp, address: hostOf(conn.RemoteAddr().String()), active: time.Now()}
	if l.config != nil {
		// The server does not see that this is TLS, so that Read sees lines.
		added.handshake = &handshake{TCPConn: tcp, of: added, left: maxHandshakeBytes}
		added.stream = tls.Server(added.handshake, l.config)
	}
	l.limits.add(added)
	return added, nil
}

func (c *Connections) add(added *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.all) >= c.most {
		c.close(c.worst())
	}
	if c.senders[added.address] == nil {
		c.senders[added.address] = &sender{}
	}
	added.from = c.senders[added.address]
	added.from.connections++
	c.all[added] = struct{}{}
}

// worst returns the connection that is closed for a new one.
func (c *Connections) worst() (found *connection) {
	for each := range c.all {
		if found == nil || c.worse(each, found) > 0 {
			found = each
		}
	}
	return found
}

// worse orders what is closed for a new connection last.
func (c *Connections) worse(a, b *connection) int {
	return cmp.Or(
		lessTrue(c.isFavoured(a.from), c.isFavoured(b.from)),
		cmp.Compare(a.from.connections, b.from.connections),
		lessTrue(a.isServed, b.isServed),
		lessTrue(a.isAccepted, b.isAccepted),
		b.active.Compare(a.active))
}

// isFavoured reports whether connections of others are closed first: its requests are
// accepted, and it has no more connections than an API server needs.
func (c *Connections) isFavoured(s *sender) bool { return s.accepted > 0 && s.connections <= c.most/4 }

// lessTrue orders what is true first.
func lessTrue(a, b bool) int {
	if a == b {
		return 0
	}
	if a {
		return -1
	}
	return 1
}

// close closes without a TLS alert, which could wait for the client.
func (c *Connections) close(victim *connection) {
	c.remove(victim)
	victim.leave()
	_ = victim.tcp.Close()
}

func (c *Connections) remove(gone *connection) {
	if _, known := c.all[gone]; !known {
		return
	}
	delete(c.all, gone)
	if gone.isAccepted {
		gone.from.accepted--
	}
	if gone.from.connections--; gone.from.connections == 0 {
		delete(c.senders, gone.address)
	}
}

func (c *Connections) accept(accepted *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.all[accepted]; known && !accepted.isAccepted {
		accepted.isAccepted = true
		accepted.from.accepted++
	}
}

// serve notes that a handler begins or ends.
func (c *Connections) serve(served *connection, begins bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	served.isServed = begins
	if begins {
		served.lines.Store(servedLines)
	} else {
		served.active = time.Now()
		served.lines.Store(0)
	}
}

// Read implements net.Conn.
func (c *connection) Read(into []byte) (int, error) {
	read, err := c.stream.Read(into)
	if c.handshake != nil && !c.handshake.isComplete {
		c.handshake.isComplete = true
		if err != nil && c.limits.log != nil {
			c.limits.log.Printf("TLS handshake with %s: %v", c.address, err)
		}
	}
	if c.lines.Add(int64(bytes.Count(into[:read], []byte{'\n'}))) > maxHeaderLines {
		return 0, errHeader
	}
	return read, err
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.limits.mu.Lock()
	c.limits.remove(c)
	c.limits.mu.Unlock()
	c.leave()
	return c.stream.Close()
}

// hostOf returns an address without its port.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
