package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"maps"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// oddCA returns the data of a Secret with a CA that Headwater would not issue.
func oddCA(t testing.TB, curve elliptic.Curve, change func(ca, leaf *x509.Certificate)) map[string][]byte {
	t.Helper()
	now := start()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	require.NoError(t, err)
	ca := &x509.Certificate{
		Subject: pkix.Name{CommonName: "odd"}, NotBefore: now.Add(-time.Minute), NotAfter: now.Add(caLifetime),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	leaf := &x509.Certificate{
		Subject: pkix.Name{CommonName: "leaf"}, DNSNames: protecttest.Hosts().Names, IPAddresses: protecttest.Hosts().IPs,
		NotBefore: now.Add(-time.Minute), NotAfter: now.Add(leafLifetime), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	change(ca, leaf)
	root, err := sign(ca, ca, key, key)
	require.NoError(t, err)
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	serving, err := sign(leaf, root, leafKey, key)
	require.NoError(t, err)
	data, err := (&Material{bundle: []*x509.Certificate{root}, caKey: key, leaf: serving, leafKey: leafKey}).encode()
	require.NoError(t, err)
	return data
}

func oddCAs(t testing.TB) map[string]map[string][]byte {
	t.Helper()
	of := func(change func(ca, leaf *x509.Certificate)) map[string][]byte {
		return oddCA(t, elliptic.P256(), change)
	}
	_, elsewhere, err := net.ParseCIDR("10.0.0.0/8")
	require.NoError(t, err)
	return map[string]map[string][]byte{
		"as it should be":   of(func(_, _ *x509.Certificate) {}),
		"of another curve":  oddCA(t, elliptic.P521(), func(_, _ *x509.Certificate) {}),
		"that may not sign": of(func(ca, _ *x509.Certificate) { ca.KeyUsage = x509.KeyUsageDigitalSignature }),
		"for clients alone": of(func(ca, _ *x509.Certificate) { ca.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }),
		"for other names alone": of(func(ca, _ *x509.Certificate) {
			ca.PermittedDNSDomainsCritical, ca.PermittedDNSDomains = true, []string{"example.com"}
		}),
		"for other addresses alone": of(func(ca, _ *x509.Certificate) { ca.PermittedIPRanges = []*net.IPNet{elsewhere} }),
		"with something of its own": of(func(ca, _ *x509.Certificate) {
			ca.ExtraExtensions = []pkix.Extension{{Id: []int{1, 2, 3}, Critical: true, Value: []byte{5, 0}}}
		}),
		"that ends in half an hour":  of(func(ca, _ *x509.Certificate) { ca.NotAfter = start().Add(30 * time.Minute) }),
		"that has ended":             of(func(ca, _ *x509.Certificate) { ca.NotAfter = start().Add(-time.Second) }),
		"that has not begun":         of(func(ca, _ *x509.Certificate) { ca.NotBefore = start().Add(time.Hour) }),
		"beside a leaf for anything": of(func(_, leaf *x509.Certificate) { leaf.DNSNames = []string{"*", "*.svc", "a..b"} }),
		"beside a leaf for nothing":  of(func(_, leaf *x509.Certificate) { leaf.DNSNames, leaf.IPAddresses = nil, nil }),
		"beside a leaf for clients":  of(func(_, leaf *x509.Certificate) { leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }),
		"beside a leaf that ended":   of(func(_, leaf *x509.Certificate) { leaf.NotAfter = start().Add(-time.Second) }),
	}
}

func TestACAThatCanVouchForNothingIsReplaced(t *testing.T) {
	for what, data := range oddCAs(t) {
		t.Run(what, func(t *testing.T) {
			m, err := decode(data)
			require.NoError(t, err)
			kept, _, err := Maintain(m, nil, protecttest.Hosts(), never, start())
			require.NoError(t, err)
			requireServable(t, kept.Credential(), protecttest.Hosts(), start())
		})
	}
}

// requireServable fails unless a client that trusts the published CAs accepts
// the credential for every host.
func requireServable(t testing.TB, credential *credential, hosts spec.Hosts, now time.Time) {
	t.Helper()
	for _, host := range hosts.Names {
		_, err := credential.verify(credential.roots, host, now)
		require.NoError(t, err)
	}
	require.True(t, covers(credential.leaf(), hosts))
}

// With any data in the Secret, the served certificate is valid for its hosts
// and the published CAs, and decoded data encodes to the same data.
func FuzzDecode(f *testing.F) {
	add := func(data map[string][]byte) {
		f.Add(data[fieldBundle], data[fieldCAKey], data[fieldLeaf], data[fieldLeafKey])
	}
	all := oddCAs(f)
	for _, what := range slices.Sorted(maps.Keys(all)) {
		add(all[what])
	}
	add(map[string][]byte{})
	f.Fuzz(func(t *testing.T, bundle, caKey, leaf, leafKey []byte) {
		m, err := decode(map[string][]byte{fieldBundle: bundle, fieldCAKey: caKey, fieldLeaf: leaf, fieldLeafKey: leafKey})
		if err != nil {
			require.Nil(t, m)
			require.Less(t, len(err.Error()), 128, "errors quote nothing")
		} else {
			require.True(t, m.caKey.PublicKey.Equal(m.bundle[0].PublicKey))
			require.Equal(t, m.leaf == nil, m.leafKey == nil)
		}
		kept, done, err := Maintain(m, nil, protecttest.Hosts(), never, start())
		require.NoError(t, err)
		require.Equal(t, TaskNone, Due(kept, protecttest.Hosts(), never, start()))
		require.True(t, kept.leafKey.PublicKey.Equal(kept.leaf.PublicKey))
		requireServable(t, kept.Credential(), protecttest.Hosts(), start())
		if len(done) == 0 {
			require.Equal(t, m, kept)
		}
		written, err := kept.encode()
		require.NoError(t, err)
		requeueAfter, err := decode(written)
		require.NoError(t, err)
		require.True(t, requeueAfter.leaf.Equal(kept.leaf))
		require.Len(t, requeueAfter.bundle, len(kept.bundle))
	})
}

// A provided Secret is served only if the API server accepts its certificate.
func FuzzGiven(f *testing.F) {
	all := oddCAs(f)
	for _, what := range slices.Sorted(maps.Keys(all)) {
		data := all[what]
		f.Add(data[fieldBundle], data[fieldLeaf], data[fieldLeafKey])
		f.Add([]byte(nil), append(data[fieldLeaf], data[fieldBundle]...), data[fieldLeafKey])
		f.Add([]byte(nil), data[fieldBundle], data[fieldCAKey])
	}
	f.Add([]byte(nil), []byte(nil), []byte(nil))
	f.Fuzz(func(t *testing.T, bundle, leaf, leafKey []byte) {
		credential, err := decodeCredential(map[string][]byte{fieldBundle: bundle, fieldLeaf: leaf, fieldLeafKey: leafKey})
		if err != nil {
			require.Nil(t, credential)
			require.Less(t, len(err.Error()), 128, "errors quote nothing")
			return
		}
		require.NotEmpty(t, credential.roots)
		_, err = tls.X509KeyPair(leaf, leafKey)
		require.NoError(t, err, "the key is that of the certificate")
		require.Equal(t, credential.TLS.Certificate[0], credential.leaf().Raw)
		credential.expiries(start())
		serving := chooseServing(nil, credential, publishedCAs{bundles: [][]*x509.Certificate{credential.roots}}, 0, start())
		require.Same(t, credential, serving)
	})
}
