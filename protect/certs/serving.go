package certs

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// publishedBy lists the different CA bundles of configuration, which is nil
// when there is none.
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

// Credential is a certificate to serve, and the CAs that a client must trust
// for it.
type Credential struct {
	// TLS has its Leaf set; after the leaf may come intermediate CAs.
	TLS   *tls.Certificate
	Roots []*x509.Certificate
}

func (c *Credential) leaf() *x509.Certificate { return c.TLS.Leaf }

// trustedBy reports whether a client that trusts roots accepts the
// certificate.
func (c *Credential) trustedBy(roots []*x509.Certificate, now time.Time) bool {
	_, err := c.verify(roots, "", now)
	return err == nil
}

// verify returns the chains from the certificate to one of roots. An empty
// host stands for any.
func (c *Credential) verify(roots []*x509.Certificate, host string, now time.Time) ([][]*x509.Certificate, error) {
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

// expiries returns when the certificate expires, and when the CA that vouches
// for it does.
func (c *Credential) expiries(now time.Time) (serving, ca time.Time) {
	vouching := c.Roots[0]
	if chains, err := c.verify(c.Roots, "", now); err == nil {
		vouching = chains[0][len(chains[0])-1]
	}
	return c.leaf().NotAfter, vouching.NotAfter
}

// publishedCAs is what the webhook configuration tells API servers to trust.
type publishedCAs struct {
	// bundles are the different ones that it holds; none while there is no
	// webhook for which a certificate would matter.
	bundles [][]*x509.Certificate
	// since is when exactly these were seen first.
	since time.Time
}

// trusts reports whether a client that goes by any of the bundles accepts the
// certificate.
func (p publishedCAs) trusts(credential *Credential, now time.Time) bool {
	return !slices.ContainsFunc(p.bundles, func(bundle []*x509.Certificate) bool { return !credential.trustedBy(bundle, now) })
}

// contains reports whether ca is in every bundle.
func (p publishedCAs) contains(ca *x509.Certificate) bool {
	return !slices.ContainsFunc(p.bundles, func(bundle []*x509.Certificate) bool { return !slices.ContainsFunc(bundle, ca.Equal) })
}

// chooseServing says which certificate to serve: wanted as soon as every API server
// trusts it, and current until then, while that is of any use. API servers
// hear of another bundle one after the other; settle is how long it takes them
// at most. Both may be nil.
func chooseServing(current, wanted *Credential, published publishedCAs, settle time.Duration, now time.Time) *Credential {
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

// union lists the certificates of lists, each once, in the order of their first
// occurrence.
func union(lists ...[]*x509.Certificate) []*x509.Certificate {
	var all []*x509.Certificate
	for _, certificate := range slices.Concat(lists...) {
		if !slices.ContainsFunc(all, certificate.Equal) {
			all = append(all, certificate)
		}
	}
	return all
}
