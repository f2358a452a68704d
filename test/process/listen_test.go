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

func TestAPortThatWasFoundIsGivenToNobodyElse(t *testing.T) {
	var one, other block
	given := map[int]bool{}
	for range blockSize / 2 {
		for _, b := range []*block{&one, &other} {
			listener, err := b.listen("127.0.0.1")
			require.NoError(t, err)
			port := listener.Addr().(*net.TCPAddr).Port
			require.False(t, given[port], "%d is given twice", port)
			given[port] = true
			require.NoError(t, listener.Close())
		}
	}
	require.NoError(t, one.claim.Close())
	require.NoError(t, other.claim.Close())
}
