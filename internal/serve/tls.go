package serve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"maps"
	"math/big"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/keypair"
)

// certificateLife is longer than any process runs. Each process creates its own
// certificate.
const certificateLife = 10 * 365 * 24 * time.Hour

// Certificate returns the certificate to serve, or an error if there is none. It
// has the signature of tls.Config.GetCertificate.
type Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// TLS are the versions and cipher suites of all servers.
type TLS struct {
	// MinVersion is at least TLS 1.2, which is the default.
	MinVersion uint16
	// CipherSuites are for TLS 1.2; those of TLS 1.3 are fixed. Empty means Go's.
	CipherSuites []uint16
}

// NewTLS returns the TLS with these names, as Kubernetes' own components name them: VersionTLS12 or
// VersionTLS13, and the names of cipher suites in crypto/tls.
func NewTLS(minVersion string, cipherSuites []string) (TLS, error) {
	var result TLS
	switch minVersion {
	case "", "VersionTLS12":
		result.MinVersion = tls.VersionTLS12
	case "VersionTLS13":
		result.MinVersion = tls.VersionTLS13
	default:
		return result, fmt.Errorf("--tls-min-version %q: use VersionTLS12 or VersionTLS13", minVersion)
	}
	secure := map[string]uint16{}
	for _, suite := range tls.CipherSuites() {
		secure[suite.Name] = suite.ID
	}
	for _, name := range cipherSuites {
		id, found := secure[name]
		if !found {
			return result, fmt.Errorf("--tls-cipher-suites: %q is not a secure cipher suite that Headwater has; use some of %s",
				name, strings.Join(slices.Sorted(maps.Keys(secure)), ","))
		}
		result.CipherSuites = append(result.CipherSuites, id)
	}
	return result, nil
}

// Config returns a configuration that serves certificate.
func (t TLS) Config(certificate Certificate) *tls.Config {
	return &tls.Config{
		GetCertificate: certificate, MinVersion: max(t.MinVersion, tls.VersionTLS12), CipherSuites: t.CipherSuites,
		NextProtos: []string{"http/1.1"},
	}
}

// FileCertificate returns the certificate in two files of PEM. It reads them again
// every reloadInterval. If they cannot be read then, it keeps the last one.
func FileCertificate(certFile, keyFile string, clk clock.PassiveClock) (Certificate, error) {
	current, err := readPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert-file and --tls-private-key-file: %w", err)
	}
	var mu sync.Mutex
	read := clk.Now()
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		mu.Lock()
		defer mu.Unlock()
		if clk.Since(read) >= reloadInterval {
			read = clk.Now()
			if renewed, err := readPair(certFile, keyFile); err == nil {
				current = renewed
			}
		}
		served := current
		return &served, nil
	}, nil
}

func readPair(certFile, keyFile string) (tls.Certificate, error) {
	certificate, err := os.ReadFile(certFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	return keypair.Parse(certificate, key)
}

// reloadInterval is how long a renewed certificate file is not noticed.
const reloadInterval = 30 * time.Second

// orSelfSigned is a configuration that serves certificate, which clients can verify
// with its CA. While there is none, because no webhook is needed, it serves a
// self-signed one, which encrypts tokens but does not authenticate the server.
func (t TLS) orSelfSigned(certificate Certificate) (*tls.Config, error) {
	selfSigned, err := newCertificate(time.Now())
	if err != nil {
		return nil, fmt.Errorf("certificate for /metrics: %w", err)
	}
	return t.Config(func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if found, err := certificate(hello); err == nil {
			return found, nil
		}
		return &selfSigned, nil
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
