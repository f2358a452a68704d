package serve

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func noCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return nil, errors.New("no certificate yet")
}

func TestTheGivenCertificateIsServedOnceThereIsOne(t *testing.T) {
	given, err := newCertificate(time.Now())
	require.NoError(t, err)
	authority, err := x509.ParseCertificate(given.Certificate[0])
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	current := Certificate(noCertificate)
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listener, err := overTLS(plain, func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return current(hello) })
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()

	shake := func(config *tls.Config) error {
		served := make(chan struct{})
		go func() {
			defer close(served)
			if connection, err := listener.Accept(); err == nil {
				_, _ = connection.Read(make([]byte, 1)) // the handshake, until the client closes
				_ = connection.Close()
			}
		}()
		config.ServerName = "headwater-metrics"
		client, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", plain.Addr().String(), config)
		if err == nil {
			require.NoError(t, client.Close())
		}
		<-served
		return err
	}
	require.NoError(t, shake(&tls.Config{InsecureSkipVerify: true}), "probes do not verify")
	require.ErrorContains(t, shake(&tls.Config{RootCAs: roots}), "certificate")
	current = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &given, nil }
	require.NoError(t, shake(&tls.Config{RootCAs: roots}))
}
