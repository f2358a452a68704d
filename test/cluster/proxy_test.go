package cluster

import (
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// silence is for how long nothing must come through.
const silence = 200 * time.Millisecond

// echo answers every connection with what it is sent.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", address(0))
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return listener.Addr().String()
}

func TestAProxyBreaksTheWayToItsTarget(t *testing.T) {
	proxy, err := newProxy(echo(t), localhost)
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", proxy.address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	// answer is what comes back for one byte.
	answer := func(conn net.Conn, within time.Duration) error {
		_, err := conn.Write([]byte{1})
		require.NoError(t, err)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(within)))
		_, err = conn.Read(make([]byte, 1))
		return err
	}
	cut := dial()
	require.NoError(t, answer(cut, testTimeout))
	proxy.Cut()
	_, err = cut.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "dropped")
	_, err = net.Dial("tcp", proxy.address)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.NoError(t, proxy.Restore())

	slow := dial()
	proxy.Slow(silence)
	require.ErrorContains(t, answer(slow, silence), "i/o timeout")
	require.NoError(t, slow.SetReadDeadline(time.Now().Add(testTimeout)))
	_, err = slow.Read(make([]byte, 1))
	require.NoError(t, err, "late, and not lost")
	require.NoError(t, proxy.Restore())

	before := dial()
	require.NoError(t, answer(before, testTimeout))
	proxy.Hold()
	during := dial()
	require.Eventually(t, func() bool { return proxy.has(during) }, testTimeout, pollInterval) // or it comes to be after the hold
	for _, held := range []net.Conn{before, during} {
		require.ErrorContains(t, answer(held, silence), "i/o timeout")
	}
	require.NoError(t, proxy.Restore())
	require.NoError(t, answer(dial(), testTimeout))
	require.ErrorContains(t, answer(before, silence), "i/o timeout", "once held, for ever held")
	proxy.Close()
	require.Empty(t, proxy.links)
	sent, received := proxy.Passed()
	require.Equal(t, [2]int64{4, 4}, [2]int64{sent, received}, "of six bytes, two were swallowed")
}

// has reports whether the proxy has taken the connection.
func (p *Proxy) has(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if l.client.RemoteAddr().String() == conn.LocalAddr().String() {
			return true
		}
	}
	return false
}
