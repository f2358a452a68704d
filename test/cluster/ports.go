package cluster

import (
	"net"
	"strconv"

	"github.com/headwater-k8s/headwater/test/process"
)

const localhost = "127.0.0.1"

type ports struct{ apiServer, etcd, etcdPeer int }

// freePorts finds ports that nobody listens on just now. Nothing keeps others
// from taking them before we do, so that Start has to try again then.
func freePorts() (ports, error) {
	var found [3]int
	for i := range found {
		listener, err := process.Listen(localhost)
		if err != nil {
			return ports{}, err
		}
		defer func() { _ = listener.Close() }() // only then, so that all differ
		found[i] = listener.Addr().(*net.TCPAddr).Port
	}
	return ports{apiServer: found[0], etcd: found[1], etcdPeer: found[2]}, nil
}

func address(port int) string {
	return net.JoinHostPort(localhost, strconv.Itoa(port))
}
