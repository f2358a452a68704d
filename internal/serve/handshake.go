package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"net"

	"golang.org/x/time/rate"
)

const (
	// maxHandshakeBytes is several times the bytes of a handshake.
	maxHandshakeBytes = 8 << 10
	// Handshakes of one address, of which no request was accepted, and of all such
	// addresses together beyond that. They are what costs most of a connection.
	handshakesPerSecond, handshakesAtOnce = 20, 100
	furtherHandshakesPerSecond            = 200
	maxAddresses                          = 1024
)

var errHandshake = errors.New("the handshake is too large")

// handshake is the TCP connection under TLS. It limits what a handshake sends.
type handshake struct {
	*net.TCPConn

	of         *connection
	left       int
	isComplete bool
}

// Read implements net.Conn.
func (h *handshake) Read(into []byte) (int, error) {
	if h.isComplete {
		return h.TCPConn.Read(into)
	}
	if h.left == 0 {
		return 0, errHandshake
	}
	read, err := h.TCPConn.Read(into[:min(len(into), h.left)])
	h.left -= read
	return read, err
}

// pace is tls.Config.GetConfigForClient. It blocks the handshake until it may go on. It
// fails if that takes long: then enough others wait already.
func (c *Connections) pace(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	shaking, _ := hello.Conn.(*handshake)
	by := shaking.of
	of, _ := c.handshakes.Get(by.address)
	limiter, known := of.(*rate.Limiter)
	if !known {
		limiter = rate.NewLimiter(handshakesPerSecond, handshakesAtOnce)
		c.handshakes.Add(by.address, limiter)
	}
	if limiter.Allow() || c.isTrusted(by) {
		return nil, nil //nolint:nilnil // the configuration stays
	}
	ctx, cancel := context.WithTimeout(by.ctx, headerTimeout)
	defer cancel()
	return nil, c.furtherHandshakes.Wait(ctx)
}

// isTrusted reports whether a request of the same address was accepted, as of an API
// server, which may start many connections at once.
func (c *Connections) isTrusted(by *connection) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return by.from.accepted > 0
}
