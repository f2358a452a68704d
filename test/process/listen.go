package process

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

const (
	// Below the ports that systems give to outgoing connections, and below those of
	// NodePort services: while a server is down for a restart, no client that dials and no
	// server that takes any port can be given its port.
	firstPort = 21000
	lastPort  = 29999

	portTries = 1000
)

// Listen listens on a port of host that nobody listens on. A program that is to have
// the port gets it once the listener is closed; nothing keeps others from taking it
// before.
func Listen(host string) (net.Listener, error) {
	for range portTries {
		port := strconv.Itoa(firstPort + rand.IntN(lastPort-firstPort+1))
		if listener, err := net.Listen("tcp", net.JoinHostPort(host, port)); err == nil {
			return listener, nil
		}
	}
	return nil, fmt.Errorf("find a free port: none of %d that were tried on %s is free", portTries, host)
}
