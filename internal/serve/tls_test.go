package serve

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"
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
	encrypts, err := TLS{}.orSelfSigned(func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return current(hello) })
	require.NoError(t, err)
	listener := tls.NewListener(plain, encrypts)
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

func TestVersionsAndCipherSuitesHaveTheNamesOfKubernetes(t *testing.T) {
	settings, err := NewTLS("VersionTLS13", []string{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"})
	require.NoError(t, err)
	config := settings.Config(nil)
	require.Equal(t, uint16(tls.VersionTLS13), config.MinVersion)
	require.Equal(t, []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}, config.CipherSuites)
	require.Equal(t, uint16(tls.VersionTLS12), TLS{}.Config(nil).MinVersion)
	_, err = NewTLS("VersionTLS11", nil)
	require.ErrorContains(t, err, `--tls-min-version "VersionTLS11": use VersionTLS12 or VersionTLS13`)
	_, err = NewTLS("", []string{"TLS_RSA_WITH_RC4_128_SHA"})
	require.ErrorContains(t, err, `"TLS_RSA_WITH_RC4_128_SHA" is not a secure cipher suite`)
}

func TestARenewedCertificateFileIsServed(t *testing.T) {
	certFile, keyFile := filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
	write := func() []byte {
		pair, err := newCertificate(time.Now())
		require.NoError(t, err)
		key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), 0o600))
		require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
		return pair.Certificate[0]
	}
	_, err := FileCertificate(certFile, keyFile, clocktesting.NewFakePassiveClock(time.Now()))
	require.ErrorContains(t, err, "--tls-cert-file")
	first, clock := write(), clocktesting.NewFakePassiveClock(time.Now())
	certificate, err := FileCertificate(certFile, keyFile, clock)
	require.NoError(t, err)
	serves := func(want []byte) {
		served, err := certificate(nil)
		require.NoError(t, err)
		require.Equal(t, want, served.Certificate[0])
	}
	second := write()
	serves(first)
	clock.SetTime(clock.Now().Add(reloadInterval))
	serves(second)
	require.NoError(t, os.WriteFile(keyFile, nil, 0o600))
	clock.SetTime(clock.Now().Add(reloadInterval))
	serves(second)
}
