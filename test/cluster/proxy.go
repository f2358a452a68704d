package cluster

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headwater-k8s/headwater/test/process"
)

// Proxy is a way to the API server that a test can break. Its methods may be
// called concurrently.
type Proxy struct {
	cluster *Cluster
	target  string
	address string
	dialer  net.Dialer
	// delay is how long, in nanoseconds, whatever passes is kept.
	delay atomic.Int64
	// sent and received are the bytes that passed, seen from the client.
	sent, received atomic.Int64

	mu       sync.Mutex
	listener net.Listener // nil while cut
	holding  bool
	links    map[*link]struct{}
	running  sync.WaitGroup
}

// Proxy opens one more way to the API server. Close ends it.
func (c *Cluster) Proxy() (*Proxy, error) { return c.ProxyFrom(localhost) }

// ProxyFrom is Proxy, and has requests come from this address of the machine, by
// which Request.Source tells them from others. On Linux all of 127.0.0.0/8 will do.
func (c *Cluster) ProxyFrom(source string) (*Proxy, error) {
	p, err := newProxy(address(c.ports.apiServer), source)
	if err != nil {
		return nil, err
	}
	p.cluster = c
	return p, nil
}

func newProxy(target, source string) (*Proxy, error) {
	p := &Proxy{target: target, links: map[*link]struct{}{}}
	p.dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(source)}
	listener, err := process.Listen(localhost)
	if err != nil {
		return nil, fmt.Errorf("open a proxy: %w", err)
	}
	p.address = listener.Addr().String()
	p.serve(listener)
	return p, nil
}

// KubeconfigFor is Cluster.KubeconfigFor by way of the proxy.
func (p *Proxy) KubeconfigFor(path, user string, groups ...string) error {
	return p.cluster.writeKubeconfig(path, "https://"+p.address, p.cluster.actingAs(user, groups...))
}

// Cut drops every connection and refuses new ones.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	for l := range p.links {
		l.close()
	}
}

// Hold is a black hole: it lets no byte through and tells neither side. New
// connections are taken, and swallowed too.
func (p *Proxy) Hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holding = true
	for l := range p.links {
		l.held.Store(true)
	}
}

// Slow keeps whatever passes for delay, piece by piece, in both directions.
func (p *Proxy) Slow(delay time.Duration) { p.delay.Store(int64(delay)) }

// Passed is how many bytes the proxy has let through to the API server, and back.
func (p *Proxy) Passed() (sent, received int64) { return p.sent.Load(), p.received.Load() }

// Restore lets new connections through, at full speed. Those that were held stay
// so.
func (p *Proxy) Restore() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holding = false
	p.Slow(0)
	if p.listener != nil {
		return nil
	}
	listener, err := net.Listen("tcp", p.address)
	if err != nil {
		return fmt.Errorf("open a proxy: %w", err)
	}
	p.serve(listener)
	return nil
}

func (p *Proxy) serve(listener net.Listener) {
	p.listener = listener
	p.running.Go(func() { p.accept(listener) })
}

// Close cuts, and returns once nothing of the proxy is left running.
func (p *Proxy) Close() {
	p.Cut()
	p.running.Wait()
}

func (p *Proxy) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			p.open(listener, client)
		}
	}
}

// open hangs up where the server cannot be reached, or the proxy was cut since.
func (p *Proxy) open(listener net.Listener, client net.Conn) {
	server, err := p.dialer.Dial("tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{proxy: p, client: client, server: server}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != listener {
		l.close()
		return
	}
	l.held.Store(p.holding)
	p.links[l] = struct{}{}
	p.running.Go(func() {
		l.pump()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.links, l)
	})
}

// link is one connection through the proxy.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	held           atomic.Bool
}

// pump returns once both sides have ended.
func (l *link) pump() {
	var both sync.WaitGroup
	both.Go(func() { l.copy(l.server, l.client, &l.proxy.sent) })
	both.Go(func() { l.copy(l.client, l.server, &l.proxy.received) })
	both.Wait()
}

// copy keeps the end of a held link to itself, as it does its bytes.
func (l *link) copy(to io.Writer, from io.Reader, passed *atomic.Int64) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		<-time.After(time.Duration(l.proxy.delay.Load()))
		if !l.held.Load() && n > 0 {
			written, writeErr := to.Write(buffer[:n])
			passed.Add(int64(written))
			err = errors.Join(err, writeErr)
		}
		if err == nil {
			continue
		}
		if !l.held.Load() {
			l.close()
		}
		return
	}
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}
