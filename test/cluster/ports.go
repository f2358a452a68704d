package cluster

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

const (
	localhost = "127.0.0.1"

	// Below the ports that systems give to outgoing connections, and below those
	// of NodePort services: while the API server is down for a restart, no client
	// that dials can be given its port.
	firstPort = 21000
	lastPort  = 29999

	portTries = 1000
)

type ports struct{ apiServer, etcd, etcdPeer int }

// freePorts finds ports that nobody listens on just now. Nothing keeps others
// from taking them before we do, so that Start has to try again then.
func freePorts() (ports, error) {
	var found []int
	var listeners []net.Listener
	defer func() {
		for _, listener := range listeners {
			_ = listener.Close()
		}
	}()
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		listener, err := net.Listen("tcp", address(port))
		if err != nil {
			continue
		}
		listeners = append(listeners, listener)
		if found = append(found, port); len(found) == 3 {
			return ports{apiServer: found[0], etcd: found[1], etcdPeer: found[2]}, nil
		}
	}
	return ports{}, fmt.Errorf("find free ports: hardly any of %d that were tried on %s is free", portTries, localhost)
}

func address(port int) string {
	return net.JoinHostPort(localhost, strconv.Itoa(port))
}
