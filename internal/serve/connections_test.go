package serve

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

// port is a server that accepts requests for /accepted.
type port struct {
	*testing.T

	limits  *Connections
	address string
	// Requests for /wait are noted in waiting, and answered after one read of proceed.
	waiting, proceed chan struct{}
}

func newPort(t *testing.T, config *tls.Config) *port {
	t.Helper()
	waiting, proceed := make(chan struct{}), make(chan struct{})
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/accepted":
			Accept(w, r)
		case "/wait":
			waiting <- struct{}{}
			<-proceed
		}
		_, _ = io.WriteString(w, "ok")
	})}
	limits := LimitConnections(server, maxConnections, func() bool { return true })
	plain, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(limits.Listen(plain, config)) }()
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	return &port{t, limits, plain.Addr().String(), waiting, proceed}
}

// dial connects from the address 127.0.0.number.
func (p *port) dial(number byte) net.Conn {
	p.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, number)}}
	conn, err := dialer.DialContext(p.Context(), "tcp", p.address)
	require.NoError(p, err)
	p.Cleanup(func() { _ = conn.Close() })
	return conn
}

func limited(t *testing.T) (dial func() net.Conn) {
	t.Helper()
	p := newPort(t, nil)
	return func() net.Conn { return p.dial(1) }
}

// reply is what tests read of a response.
type reply struct {
	StatusCode int
	Close      bool
}

func ask(t *testing.T, conn net.Conn, path string) reply {
	t.Helper()
	_, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n")
	require.NoError(t, err)
	return replyOf(t, conn)
}

func replyOf(t *testing.T, conn net.Conn) reply {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return reply{response.StatusCode, response.Close}
}

// isClosed waits for the server to close conn.
func isClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err := conn.Read(make([]byte, 1))
	require.Error(t, err)
	netErr, isTimeout := err.(net.Error) //nolint:errorlint // what Read returns
	require.False(t, isTimeout && netErr.Timeout(), "the server keeps it")
}

func TestOnlyAConnectionWithAnAcceptedRequestIsKept(t *testing.T) {
	dial := limited(t)
	other := dial()
	require.True(t, ask(t, other, "/other").Close)
	isClosed(t, other)
	accepted := dial()
	for range 3 {
		require.False(t, ask(t, accepted, "/accepted").Close)
	}
	require.True(t, ask(t, accepted, "/other").Close)
}

func TestANewConnectionIsNeverRefused(t *testing.T) {
	dial := limited(t)
	accepted := dial()
	require.False(t, ask(t, accepted, "/accepted").Close)
	var idle []net.Conn
	for range maxConnections - 1 {
		idle = append(idle, dial())
	}
	for i := range 3 { // too many by one each
		conn := dial()
		require.Equal(t, http.StatusOK, ask(t, conn, "/accepted").StatusCode)
		isClosed(t, idle[i])
	}
	require.False(t, ask(t, accepted, "/accepted").Close, "the idlest of all, but with an accepted request")
	require.False(t, ask(t, idle[3], "/accepted").Close, "the next one would be closed now")
}

func TestWhenAllConnectionsAreAcceptedTheIdlestGoes(t *testing.T) {
	dial := limited(t)
	var all []net.Conn
	for range maxConnections {
		conn := dial()
		require.False(t, ask(t, conn, "/accepted").Close)
		all = append(all, conn)
	}
	require.False(t, ask(t, all[0], "/accepted").Close)
	require.False(t, ask(t, dial(), "/accepted").Close)
	isClosed(t, all[1])
	require.False(t, ask(t, all[0], "/accepted").Close)
}

func TestANewcomerInterruptsWhoHasWaitedLongestForItsClient(t *testing.T) {
	room := NewRoom(2, clock.RealClock{})
	interrupted := make(chan string, 3)
	enter := func(name string) *Place {
		return room.Enter(t.Context(), func() { interrupted <- name })
	}
	working, waiting := enter("working"), enter("waiting")
	working.Work()
	first := make(chan string, 1)
	go func() {
		first <- <-interrupted
		waiting.Leave()
	}()
	third := enter("third")
	require.NotNil(t, third, "it has the place of the interrupted one")
	require.Equal(t, "waiting", <-first)
	third.Work()
	require.Nil(t, enter("fourth"), "those that work are not interrupted")
	working.Leave()
	require.NotNil(t, enter("fifth"))
	require.Empty(t, interrupted)
}

func TestAFloodClosesItsOwnConnections(t *testing.T) {
	for sentence, path := range map[string]string{"that are idle": "", "whose requests were accepted": "/accepted"} {
		t.Run(sentence, func(t *testing.T) {
			p := newPort(t, nil)
			apiServer := p.dial(1) // the idlest of all
			if path != "" {
				require.False(t, ask(t, apiServer, path).Close)
			}
			var flood []net.Conn
			for range maxConnections + 10 {
				flood = append(flood, p.dial(2))
				if path != "" {
					require.False(t, ask(t, flood[len(flood)-1], path).Close)
				}
			}
			// Which of its own: the clock of a busy server tells their idle times apart too late.
			closed := make(chan struct{}, len(flood))
			for _, conn := range flood {
				go func() {
					_, _ = conn.Read(make([]byte, 1)) // the end of the test ends it as well
					closed <- struct{}{}
				}()
			}
			for range 11 {
				<-closed
			}
			require.Equal(t, http.StatusOK, ask(t, apiServer, "/accepted").StatusCode)
		})
	}
}

// On a slow machine, an API server's first requests are all unfinished at once.
func TestManyUnfinishedRequestsAreAllAnswered(t *testing.T) {
	p := newPort(t, nil)
	var all []net.Conn
	for range maxConnections {
		conn := p.dial(1)
		_, err := io.WriteString(conn, "GET /accepted HTTP/1.1\r\nCookie: "+strings.Repeat("a", 8<<10))
		require.NoError(t, err)
		all = append(all, conn)
	}
	for _, conn := range all {
		_, err := io.WriteString(conn, "\r\nHost: a\r\n\r\n")
		require.NoError(t, err)
		require.False(t, replyOf(t, conn).Close)
	}
}

// A flood of many addresses has one connection each.
func TestARequestOfATrustedAddressIsNotInterruptedForOthers(t *testing.T) {
	p := newPort(t, nil)
	require.False(t, ask(t, p.dial(1), "/accepted").Close)
	var requests []net.Conn
	for range 10 {
		conn := p.dial(1)
		_, err := io.WriteString(conn, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
		require.NoError(t, err)
		<-p.waiting
		requests = append(requests, conn)
	}
	for number := range maxConnections {
		p.dial(byte(2 + number))
	}
	for range requests {
		p.proceed <- struct{}{}
	}
	for _, conn := range requests {
		require.Equal(t, http.StatusOK, replyOf(t, conn).StatusCode)
	}
}

// Whose requests are accepted, as of a pod that knows the path, keeps nobody else out.
func TestAnAcceptedFloodKeepsNobodyOut(t *testing.T) {
	p := newPort(t, nil)
	require.False(t, ask(t, p.dial(2), "/accepted").Close)
	for range maxConnections {
		p.dial(2)
	}
	newcomer := p.dial(1)
	for range 10 {
		p.dial(2)
	}
	require.False(t, ask(t, newcomer, "/accepted").Close)
}

// Headers take many times their bytes in memory, handshakes twice.
func TestWhatNeverBecomesARequestIsBounded(t *testing.T) {
	for sentence, bomb := range map[string]string{
		"lines of a header":      "GET /accepted HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("a:\r\n", maxHeaderLines),
		"one line":               "GET /accepted HTTP/1.1\r\nHost: " + strings.Repeat("a", http.DefaultMaxHeaderBytes+8<<10),
		"a handshake":            "\x16\x03\x01\x40\x00\x01\x00\xf0\x00" + strings.Repeat("\x00", maxHandshakeBytes),
		"records of a handshake": strings.Repeat("\x16\x03\x01\x00\x02\x01\x00", maxHandshakeBytes/7+1),
	} {
		t.Run(sentence, func(t *testing.T) {
			var config *tls.Config
			if strings.Contains(sentence, "handshake") {
				config = testTLS(t)
			}
			p := newPort(t, config)
			conn := p.dial(2)
			_, _ = io.WriteString(conn, bomb) // may fail, since the server closes it
			require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
			answer, err := io.ReadAll(conn)
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
			require.NotContains(t, string(answer), " 200 ")
		})
	}
	p := newPort(t, testTLS(t))
	conn := tls.Client(p.dial(2), &tls.Config{InsecureSkipVerify: true})
	_, err := io.WriteString(conn, "GET /accepted HTTP/1.1\r\nHost: a\r\n"+strings.Repeat("a:\r\n", maxHeaderLines))
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, replyOf(t, conn).StatusCode)
}

// testTLS is a configuration with a certificate.
func testTLS(t *testing.T) *tls.Config {
	t.Helper()
	pair, err := newCertificate(time.Now())
	require.NoError(t, err)
	return TLS{}.Config(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil })
}

func TestOnlyAnAddressWithoutAcceptedRequestsWaitsForHandshakes(t *testing.T) {
	p := newPort(t, testTLS(t))
	p.limits.furtherHandshakes = rate.NewLimiter(0, 0) // fails at once
	shake := func(number byte) (net.Conn, error) {
		conn := tls.Client(p.dial(number), &tls.Config{InsecureSkipVerify: true})
		return conn, conn.HandshakeContext(t.Context())
	}
	exhaust := func(number byte) (made int) {
		for range 1000 {
			if _, err := shake(number); err != nil {
				return made
			}
			made++
		}
		return made
	}
	require.GreaterOrEqual(t, exhaust(2), handshakesAtOnce)
	apiServer, err := shake(1)
	require.NoError(t, err, "others do not wait")
	require.False(t, ask(t, apiServer, "/accepted").Close)
	require.Equal(t, 1000, exhaust(1), "a burst of reviews")
}
