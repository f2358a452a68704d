package process

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

const (
	// Below the ports that systems give to outgoing connections, and below those of
	// NodePort services: while a server is down for a restart, no client that dials and no
	// server that takes any port can be given its port.
	firstPort = 21000
	lastPort  = 29999

	blockSize = 250
)

// Listen listens on a port of host that nobody listens on. A program that is to have
// the port gets it once the listener is closed: no other process that calls Listen is given
// it, and this one only after all its other ports.
func Listen(host string) (net.Listener, error) { return own.listen(host) }

var own block

// block is a range of ports that one process has to itself for as long as it lives.
type block struct {
	mu sync.Mutex
	// claim listens on first, so that other processes take other blocks.
	claim net.Listener
	// last says how far after first the port is that was given last.
	first, last int
}

func (b *block) listen(host string) (net.Listener, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.claim == nil {
		if err := b.take(); err != nil {
			return nil, err
		}
	}
	for range blockSize - 1 {
		b.last = b.last%(blockSize-1) + 1
		if listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(b.first+b.last))); err == nil {
			return listener, nil
		}
	}
	return nil, fmt.Errorf("find a free port: none of %d from %d is free on %s", blockSize-1, b.first+1, host)
}

func (b *block) take() error {
	blocks := (lastPort - firstPort + 1) / blockSize
	for _, i := range rand.Perm(blocks) {
		first := firstPort + i*blockSize
		claim, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(first)))
		if err == nil {
			b.claim, b.first = claim, first
			return nil
		}
	}
	return fmt.Errorf("find free ports: other processes have all %d blocks from %d to %d", blocks, firstPort, lastPort)
}
