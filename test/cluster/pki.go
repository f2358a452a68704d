package cluster

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	caFile         = "ca.crt"
	caKeyFile      = "ca.key"
	servingCert    = "apiserver.crt"
	servingKey     = "apiserver.key"
	accountKeyFile = "sa.key"
	accountPubFile = "sa.pub"
	tokensFile     = "tokens.csv"

	adminUser    = "admin"
	mastersGroup = "system:masters"

	lifetime = 365 * 24 * time.Hour
)

// credentials are how everybody in one cluster knows everybody else.
type credentials struct {
	ca     []byte
	tokens map[string]string // by user
}

// writeCredentials makes an authority for the API server, keys for service
// accounts and a token for each component, and writes what the components read.
func writeCredentials(dir string) (*credentials, error) {
	creds := &credentials{tokens: map[string]string{
		adminUser:                        rand.Text(),
		componentUser(ControllerManager): rand.Text(),
		componentUser(Scheduler):         rand.Text(),
	}}
	files := map[string][]byte{}
	if err := servingFiles(files); err != nil {
		return nil, fmt.Errorf("make the API server's certificate: %w", err)
	}
	if err := accountFiles(files); err != nil {
		return nil, fmt.Errorf("make the service account keys: %w", err)
	}
	creds.ca = files[caFile]
	var lines bytes.Buffer
	for user, token := range creds.tokens {
		group := ""
		if user == adminUser {
			group = mastersGroup
		}
		_, _ = fmt.Fprintf(&lines, "%s,%s,%s,%q\n", token, user, user, group)
	}
	files[tokensFile] = lines.Bytes()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, fmt.Errorf("write the credentials: %w", err)
		}
	}
	return creds, nil
}

// componentUser is the name that RBAC's bootstrap bindings know the component by.
func componentUser(component string) string {
	return "system:" + component
}

func servingFiles(files map[string][]byte) error {
	caKey, err := newKey()
	if err != nil {
		return err
	}
	authority := certificate("headwater-test-ca")
	authority.IsCA, authority.BasicConstraintsValid = true, true
	authority.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	if files[caFile], err = sign(authority, authority, caKey.Public(), caKey); err != nil {
		return err
	}
	if files[caKeyFile], err = encodeKey(caKey); err != nil {
		return err
	}
	key, err := newKey()
	if err != nil {
		return err
	}
	serving := certificate(APIServer)
	serving.KeyUsage = x509.KeyUsageDigitalSignature
	serving.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	serving.IPAddresses = []net.IP{net.ParseIP(localhost), net.ParseIP(serviceIP)}
	serving.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	if files[servingCert], err = sign(serving, authority, key.Public(), caKey); err != nil {
		return err
	}
	files[servingKey], err = encodeKey(key)
	return err
}

func accountFiles(files map[string][]byte) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	if files[accountKeyFile], err = encodeKey(key); err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	files[accountPubFile] = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	return err
}

func newKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), err
}

// certificate starts an hour ago, for clocks that are a little behind.
func certificate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(lifetime),
	}
}

func sign(cert, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, public, key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), err
}
