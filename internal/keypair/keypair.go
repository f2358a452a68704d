// Package keypair reads private keys that somebody else wrote, in bounded time.
//
// The standard library trusts the numbers of an RSA key: where a key lacks the values that
// speed up its use, it computes them before it compares anything, and with numbers of some
// hundred thousand digits that takes years and cannot be ended.
package keypair

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
)

// MaxModulus is the size in bits of the largest RSA key that is read: that of crypto/tls.
const MaxModulus = 8192

// errNumbers is all that is said of a key that is refused. It quotes no key.
var errNumbers = fmt.Errorf("the private key is no RSA key of at most %d bits: its numbers do not belong together", MaxModulus)

// Parse is tls.X509KeyPair. It fails for an RSA key of more than MaxModulus, and for one whose
// modulus is not the product of its primes, of which none is longer than half of that. Errors
// may quote certificate and key.
func Parse(certificate, key []byte) (tls.Certificate, error) {
	for rest := key; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return tls.X509KeyPair(certificate, key)
		}
		if err := check(block.Bytes); err != nil {
			return tls.Certificate{}, err
		}
	}
}

// ParsePKCS8 is x509.ParsePKCS8PrivateKey, and fails for what Parse fails for.
func ParsePKCS8(der []byte) (any, error) {
	if err := check(der); err != nil {
		return nil, err
	}
	return x509.ParsePKCS8PrivateKey(der)
}

// rsaKey is RSAPrivateKey of RFC 8017, appendix A.1.2, read as crypto/x509 reads it.
type rsaKey struct {
	Version int
	N       *big.Int
	E       int
	D, P, Q *big.Int
	Dp      *big.Int   `asn1:"optional"`
	Dq      *big.Int   `asn1:"optional"`
	Qinv    *big.Int   `asn1:"optional"`
	More    []rsaPrime `asn1:"optional,omitempty"`
}

// rsaPrime is OtherPrimeInfo of RFC 8017.
type rsaPrime struct{ Prime, Exp, Coeff *big.Int }

// wrapped is PrivateKeyInfo of RFC 5208, which PKCS#8 is.
type wrapped struct {
	Version    int
	Algorithm  pkix.AlgorithmIdentifier
	PrivateKey []byte
}

// check returns an error for an RSA key, wrapped or not, whose numbers could keep a
// processor busy. The standard library tries every form whatever the PEM block is called.
func check(der []byte) error {
	var outer wrapped
	if _, err := asn1.Unmarshal(der, &outer); err == nil {
		der = outer.PrivateKey
	}
	var key rsaKey
	if _, err := asn1.Unmarshal(der, &key); err != nil {
		return nil //nolint:nilerr // it is no RSA key
	}
	isLarge := func(number *big.Int) bool { return number != nil && number.BitLen() > MaxModulus }
	if slices.ContainsFunc([]*big.Int{key.N, key.D, key.Dp, key.Dq, key.Qinv}, isLarge) || !key.hasItsPrimes() {
		return errNumbers
	}
	return nil
}

// hasItsPrimes reports whether the modulus is the product of the primes, each greater than 1
// and at most half as long as the longest modulus: what the standard library computes takes
// time by the cube of a prime's length.
func (k rsaKey) hasItsPrimes() bool {
	product := big.NewInt(1)
	primes := []*big.Int{k.P, k.Q}
	for _, more := range k.More {
		primes = append(primes, more.Prime)
	}
	for _, prime := range primes {
		if prime.BitLen() > MaxModulus/2 || prime.Cmp(big.NewInt(1)) <= 0 || product.BitLen() > MaxModulus {
			return false
		}
		product.Mul(product, prime)
	}
	return product.Cmp(k.N) == 0
}
