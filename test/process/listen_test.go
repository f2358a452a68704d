package process

import (
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPortIsNoneThatConnectionsAreGiven(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if os.IsNotExist(err) {
		text, err = []byte("32768 60999"), nil
	}
	require.NoError(t, err)
	var first, last int
	_, err = fmt.Sscan(string(text), &first, &last)
	require.NoError(t, err)
	for range 10 {
		listener, err := Listen("127.0.0.1")
		require.NoError(t, err)
		defer func() { _ = listener.Close() }()
		port := listener.Addr().(*net.TCPAddr).Port
		require.True(t, port < first || port > last, "%d is one of %d to %d", port, first, last)
	}
}
