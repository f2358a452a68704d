package serve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"time"
)

// certificateLife is longer than any process runs. Each process creates its own
// certificate.
const certificateLife = 10 * 365 * 24 * time.Hour

// Certificate returns the certificate to serve, or an error if there is none. It
// has the signature of tls.Config.GetCertificate.
type Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// overTLS wraps listener with TLS. It serves certificate, which clients can verify
// with its CA. While there is none, because no webhook is needed, it serves a
// self-signed one, which encrypts tokens but does not authenticate the server.
func overTLS(listener net.Listener, certificate Certificate) (net.Listener, error) {
	selfSigned, err := newCertificate(time.Now())
	if err != nil {
		return nil, fmt.Errorf("certificate for /metrics: %w", err)
	}
	return tls.NewListener(listener, &tls.Config{
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if found, err := certificate(hello); err == nil {
				return found, nil
			}
			return &selfSigned, nil
		},
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
	}), nil
}

func newCertificate(now time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: "headwater-metrics"},
		DNSNames:     []string{"headwater-metrics"},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(certificateLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
