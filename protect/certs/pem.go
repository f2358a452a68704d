package certs

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/headwater-k8s/headwater/internal/keypair"
)

// Keys of the Secret.
const (
	fieldBundle  = "ca.crt"
	fieldCAKey   = "ca.key"
	fieldLeaf    = "tls.crt"
	fieldLeafKey = "tls.key"
)

const (
	blockCertificate = "CERTIFICATE"
	blockKey         = "PRIVATE KEY"
)

// BundlePEM returns the trusted CAs as PEM.
func (m *Material) BundlePEM() []byte { return encodeCertificates(m.bundle) }

func encodeCertificates(certificates []*x509.Certificate) []byte {
	var out []byte
	for _, certificate := range certificates {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: certificate.Raw})...)
	}
	return out
}

// encode returns m as the data of a Secret.
func (m *Material) encode() (map[string][]byte, error) {
	caKey, err := encodeKey(m.caKey)
	if err != nil {
		return nil, fmt.Errorf("encode CA key: %w", err)
	}
	leafKey, err := encodeKey(m.leafKey)
	if err != nil {
		return nil, fmt.Errorf("encode serving key: %w", err)
	}
	return map[string][]byte{
		fieldBundle:  m.BundlePEM(),
		fieldCAKey:   caKey,
		fieldLeaf:    pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: m.leaf.Raw}),
		fieldLeafKey: leafKey,
	}, nil
}

// decode reads the data of a Secret. It omits an unusable serving certificate,
// but fails for an unusable CA. Errors quote no data.
func decode(data map[string][]byte) (*Material, error) {
	bundle, err := decodeCertificates(data[fieldBundle])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", fieldBundle, err)
	}
	caKey, err := decodeKey(data[fieldCAKey])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", fieldCAKey, err)
	}
	if !bundle[0].IsCA || !caKey.PublicKey.Equal(bundle[0].PublicKey) {
		return nil, fmt.Errorf("%s: does not match the first CA", fieldCAKey)
	}
	leaf, leafKey := decodeLeaf(data)
	return &Material{bundle: bundle, caKey: caKey, leaf: leaf, leafKey: leafKey}, nil
}

// decodeLeaf returns nil if the serving certificate or its key is unusable.
func decodeLeaf(data map[string][]byte) (*x509.Certificate, *ecdsa.PrivateKey) {
	chain, err := decodeCertificates(data[fieldLeaf])
	key, keyErr := decodeKey(data[fieldLeafKey])
	if err != nil || keyErr != nil || !key.PublicKey.Equal(chain[0].PublicKey) {
		return nil, nil
	}
	return chain[0], key
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: blockKey, Bytes: der}), nil
}

func decodeKey(data []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != blockKey {
		return nil, errors.New("holds no private key in PEM")
	}
	parsed, err := keypair.ParsePKCS8(block.Bytes)
	if err != nil {
		return nil, errors.New("holds an unreadable private key")
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New("holds a private key that is not ECDSA")
	}
	return key, nil
}

func decodeCertificates(data []byte) ([]*x509.Certificate, error) {
	var certificates []*x509.Certificate
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if block.Type != blockCertificate {
			return nil, errors.New("holds PEM blocks other than certificates")
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("holds an unreadable certificate")
		}
		if key, isRSA := certificate.PublicKey.(*rsa.PublicKey); isRSA && key.N.BitLen() > keypair.MaxModulus {
			return nil, fmt.Errorf("holds a certificate with an RSA key of more than %d bits, which no client accepts", keypair.MaxModulus)
		}
		certificates = append(certificates, certificate)
	}
	if len(certificates) == 0 {
		return nil, errors.New("holds no certificate in PEM")
	}
	return certificates, nil
}
