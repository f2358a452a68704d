package keypair

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

// pair is a self-signed certificate and its RSA key.
func pair(t *testing.T) (certificate []byte, key *rsa.PrivateKey) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key
}

func inPEM(name string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: name, Bytes: der})
}

// bare is an RSA key without the values that speed up its use.
func bare(t *testing.T, n, d, p, q *big.Int) []byte {
	t.Helper()
	der, err := asn1.Marshal(struct {
		Version int
		N       *big.Int
		E       int
		D, P, Q *big.Int
	}{N: n, E: 65537, D: d, P: p, Q: q})
	require.NoError(t, err)
	return der
}

func inPKCS8(t *testing.T, der []byte) []byte {
	t.Helper()
	out, err := asn1.Marshal(wrapped{
		Algorithm:  pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}, Parameters: asn1.NullRawValue},
		PrivateKey: der,
	})
	require.NoError(t, err)
	return out
}

// power is 2 to the exponent, and one.
func power(exponent uint) *big.Int {
	return new(big.Int).Add(new(big.Int).Lsh(big.NewInt(1), exponent), big.NewInt(1))
}

func TestAKeyThatSomebodyMadeUpCostsNoTime(t *testing.T) {
	certificate, key := pair(t)
	one := big.NewInt
	huge := bare(t, one(5), one(1), power(4_000_000), one(3))
	for sentence, made := range map[string][]byte{
		"a prime of four million bits":                  inPEM("RSA PRIVATE KEY", huge),
		"the same in PKCS#8":                            inPEM("PRIVATE KEY", inPKCS8(t, huge)),
		"the same under another name":                   inPEM("EC PRIVATE KEY", huge),
		"the same behind what is no key":                append(inPEM("DH PARAMETERS", []byte("no key")), inPEM("PRIVATE KEY", huge)...),
		"a modulus that is the product, of many bits":   inPEM("PRIVATE KEY", bare(t, new(big.Int).Mul(power(20_000), one(3)), one(1), power(20_000), one(3))),
		"primes that have nothing to do with it":        inPEM("PRIVATE KEY", bare(t, key.N, key.D, key.Primes[0], power(1023))),
		"a long prime and a short one":                  inPEM("PRIVATE KEY", bare(t, new(big.Int).Mul(power(8_000), one(3)), one(1), power(8_000), one(3))),
		"a prime of one":                                inPEM("PRIVATE KEY", bare(t, key.N, key.D, key.N, one(1))),
		"a negative prime":                              inPEM("PRIVATE KEY", bare(t, key.N, key.D, new(big.Int).Neg(key.Primes[0]), new(big.Int).Neg(key.Primes[1]))),
		"a private exponent of four million bits":       inPEM("PRIVATE KEY", bare(t, key.N, power(4_000_000), key.Primes[0], key.Primes[1])),
		"primes of a modulus that only they could make": inPEM("PRIVATE KEY", bare(t, one(0), one(1), one(7), one(3))),
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := Parse(certificate, made)
			require.ErrorIs(t, err, errNumbers)
		})
	}
	_, err := ParsePKCS8(inPKCS8(t, huge))
	require.ErrorIs(t, err, errNumbers)
}

func TestKeysOfEveryFormAreRead(t *testing.T) {
	certificate, key := pair(t)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	for sentence, made := range map[string][]byte{
		"PKCS#1":                           inPEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)),
		"PKCS#1 without what speeds it up": inPEM("RSA PRIVATE KEY", bare(t, key.N, key.D, key.Primes[0], key.Primes[1])),
		"PKCS#8":                           inPEM("PRIVATE KEY", pkcs8),
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := Parse(certificate, made)
			require.NoError(t, err)
		})
	}
}
