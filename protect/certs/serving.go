package certs

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// publishedBy returns the distinct CA bundles of configuration, sorted.
// configuration may be nil.
func publishedBy(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) []string {
	if configuration == nil {
		return nil
	}
	var bundles []string
	for _, webhook := range configuration.Webhooks {
		bundles = append(bundles, string(webhook.ClientConfig.CABundle))
	}
	slices.Sort(bundles)
	return slices.Compact(bundles)
}

// credential is a serving certificate with the CAs that a client must trust.
type credential struct {
	// TLS has its Leaf set. Intermediate CAs may follow the leaf.
	TLS   *tls.Certificate
	roots []*x509.Certificate
}

func (c *credential) leaf() *x509.Certificate { return c.TLS.Leaf }

// trustedBy reports whether a client that trusts roots accepts the certificate.
func (c *credential) trustedBy(roots []*x509.Certificate, now time.Time) bool {
	_, err := c.verify(roots, "", now)
	return err == nil
}

// verify returns the chains from the certificate to one of roots. An empty host
// matches any certificate.
func (c *credential) verify(roots []*x509.Certificate, host string, now time.Time) ([][]*x509.Certificate, error) {
	intermediates := x509.NewCertPool()
	for _, der := range c.TLS.Certificate[1:] {
		if certificate, err := x509.ParseCertificate(der); err == nil {
			intermediates.AddCert(certificate)
		}
	}
	return c.leaf().Verify(x509.VerifyOptions{
		Roots: pool(roots), Intermediates: intermediates, DNSName: host, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// expiries returns the expiry times of the certificate and of the CA that
// signed it.
func (c *credential) expiries(now time.Time) (serving, ca time.Time) {
	vouching := c.roots[0]
	if chains, err := c.verify(c.roots, "", now); err == nil {
		vouching = chains[0][len(chains[0])-1]
	}
	return c.leaf().NotAfter, vouching.NotAfter
}

// publishedCAs are the CA bundles of the registered webhooks.
type publishedCAs struct {
	// bundles are the distinct bundles. It is empty while no webhook is
	// registered.
	bundles [][]*x509.Certificate
	// since is when this replica first saw exactly these bundles.
	since time.Time
}

// trusts reports whether clients of every bundle accept the certificate.
func (p publishedCAs) trusts(credential *credential, now time.Time) bool {
	return !slices.ContainsFunc(p.bundles, func(bundle []*x509.Certificate) bool { return !credential.trustedBy(bundle, now) })
}

// contains reports whether ca is in every bundle.
func (p publishedCAs) contains(ca *x509.Certificate) bool {
	return !slices.ContainsFunc(p.bundles, func(bundle []*x509.Certificate) bool { return !slices.ContainsFunc(bundle, ca.Equal) })
}

// chooseServing returns the certificate to serve. It is wanted once every API
// server trusts it. Until then it is current, unless API servers do not accept
// that either. A changed bundle reaches all API servers within settle. Both
// certificates may be nil.
func chooseServing(current, wanted *credential, published publishedCAs, settle time.Duration, now time.Time) *credential {
	switch {
	case wanted == nil:
		return current
	case current == nil, current.leaf().Equal(wanted.leaf()), !published.trusts(current, now):
		return wanted
	case !published.trusts(wanted, now), len(published.bundles) > 0 && now.Sub(published.since) < settle:
		return current
	default:
		return wanted
	}
}

// union returns the certificates of all lists without duplicates, in the order
// of first occurrence.
func union(lists ...[]*x509.Certificate) []*x509.Certificate {
	var all []*x509.Certificate
	for _, certificate := range slices.Concat(lists...) {
		if !slices.ContainsFunc(all, certificate.Equal) {
			all = append(all, certificate)
		}
	}
	return all
}
