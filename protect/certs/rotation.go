package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/protect/spec"
)

// Lifetimes of certificates. A certificate is renewed when a third of its
// lifetime is left. clockSkew is how far a clock may be behind.
const (
	caLifetime   = 5 * 365 * 24 * time.Hour
	leafLifetime = 365 * 24 * time.Hour
	clockSkew    = time.Hour
	// pruneAfter is how long an old CA stays published after the last serving
	// certificate that it signed was replaced.
	pruneAfter = 24 * time.Hour
	// maxBundle limits the number of published CAs.
	maxBundle = 4
)

// Material is a CA with its key, and the serving certificate with its key.
type Material struct {
	// bundle is what clients trust: the signing CA first, then older CAs that
	// may have signed a certificate that is still served.
	bundle []*x509.Certificate
	// caKey is the key of the first CA in bundle.
	caKey *ecdsa.PrivateKey
	// leaf is nil if there is no usable serving certificate.
	leaf    *x509.Certificate
	leafKey *ecdsa.PrivateKey
}

// Task is a step of certificate maintenance.
type Task string

// The tasks.
const (
	TaskNone      Task = ""
	TaskRenewCA   Task = "RenewCA"
	TaskRenewLeaf Task = "RenewLeaf"
	TaskPruneCA   Task = "PruneCA"
)

// isValid reports whether m has a serving certificate for hosts that clients trust at now.
func (m *Material) isValid(hosts spec.Hosts, now time.Time) bool {
	return m.leaf != nil && trusted(m.leaf, m.bundle, now) && covers(m.leaf, hosts)
}

// settledFunc reports whether every API server trusts ca.
type settledFunc func(ca *x509.Certificate) bool

// Due returns the next task for m. m may be nil.
//
// A CA is replaced in steps, so that every API server always trusts the served
// certificate: publish the new CA together with the old one, wait until it has
// settled, issue a new serving certificate, remove the old CA.
func Due(m *Material, hosts spec.Hosts, settled settledFunc, now time.Time) Task {
	switch {
	case m == nil || needsRenewal(m.bundle[0], now):
		return TaskRenewCA
	case !m.isValid(hosts, now) || needsRenewal(m.leaf, now):
		return TaskRenewLeaf
	case len(m.bundle) == 1:
		return TaskNone
	case !trusted(m.leaf, m.bundle[:1], now):
		return when(settled(m.bundle[0]), TaskRenewLeaf)
	default:
		return when(age(m.leaf, now) > pruneAfter, TaskPruneCA)
	}
}

func when(condition bool, task Task) Task {
	if condition {
		return task
	}
	return TaskNone
}

// Maintain performs all due tasks and returns the result. It does not modify m,
// which may be nil. If m is nil, the CAs of previous, which may be nil too,
// stay published after the new one. If the CA of m cannot sign a trusted
// certificate, it is replaced. done lists the performed tasks.
func Maintain(m, previous *Material, hosts spec.Hosts, settled settledFunc, now time.Time) (kept *Material, done []Task, err error) {
	kept = m
	for task := Due(kept, hosts, settled, now); task != TaskNone; task = Due(kept, hosts, settled, now) {
		if slices.Contains(done, task) {
			if task == TaskRenewLeaf && m != nil {
				return Maintain(nil, m, hosts, settled, now)
			}
			return nil, nil, fmt.Errorf("%s left the certificates as they were", task)
		}
		switch task {
		case TaskRenewCA:
			if m == nil {
				kept = previous
			}
			kept, err = renewCA(kept, now)
		case TaskRenewLeaf:
			kept, err = renewLeaf(kept, hosts, now)
		default:
			pruned := *kept
			pruned.bundle = kept.bundle[:1]
			kept = &pruned
		}
		if err != nil {
			return nil, nil, err
		}
		done = append(done, task)
	}
	return kept, done, nil
}

// Credential returns the serving certificate and the CAs to trust.
func (m *Material) Credential() *credential {
	return &credential{
		TLS:   &tls.Certificate{Certificate: [][]byte{m.leaf.Raw}, PrivateKey: m.leafKey, Leaf: m.leaf},
		roots: m.bundle,
	}
}

// renewCA puts a new CA first in the bundle. The serving certificate stays, and
// the CA that signed it comes second, so that maxBundle never drops a CA that
// is still in use.
func renewCA(old *Material, now time.Time) (*Material, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make CA key: %w", err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "headwater-webhook-ca"},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(caLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
	}
	certificate, err := sign(template, template, key, key)
	if err != nil {
		return nil, fmt.Errorf("make CA: %w", err)
	}
	renewed := &Material{bundle: []*x509.Certificate{certificate}, caKey: key}
	if old == nil {
		return renewed, nil
	}
	renewed.leaf, renewed.leafKey = old.leaf, old.leafKey
	for _, ca := range signerFirst(old.bundle, old.leaf) {
		if now.Before(ca.NotAfter) && len(renewed.bundle) < maxBundle {
			renewed.bundle = append(renewed.bundle, ca)
		}
	}
	return renewed, nil
}

func signerFirst(bundle []*x509.Certificate, leaf *x509.Certificate) []*x509.Certificate {
	signed := func(ca *x509.Certificate) bool { return leaf != nil && leaf.CheckSignatureFrom(ca) == nil }
	others := slices.DeleteFunc(slices.Clone(bundle), signed)
	return append(slices.DeleteFunc(slices.Clone(bundle), func(ca *x509.Certificate) bool { return !signed(ca) }), others...)
}

func renewLeaf(m *Material, hosts spec.Hosts, now time.Time) (*Material, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make serving key: %w", err)
	}
	ca := m.bundle[0]
	hosts = withHostsOf(m.leaf, hosts)
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: spec.ServiceName},
		DNSNames:    hosts.Names,
		IPAddresses: hosts.IPs,
		NotBefore:   now.Add(-clockSkew),
		NotAfter:    earlier(now.Add(leafLifetime), ca.NotAfter),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	leaf, err := sign(template, ca, key, m.caKey)
	if err != nil {
		return nil, fmt.Errorf("make serving certificate: %w", err)
	}
	return &Material{bundle: m.bundle, caKey: m.caKey, leaf: leaf, leafKey: key}, nil
}

func sign(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// withHostsOf adds the hosts of leaf to h, unless leaf already covers h. During
// an upgrade, two replicas may be configured with different hosts. They then
// agree on one certificate instead of replacing each other's forever.
func withHostsOf(leaf *x509.Certificate, h spec.Hosts) spec.Hosts {
	if leaf == nil || covers(leaf, h) {
		return h
	}
	union := spec.Hosts{Names: slices.Clone(h.Names), IPs: slices.Clone(h.IPs)}
	for _, name := range leaf.DNSNames {
		if !slices.Contains(union.Names, name) {
			union.Names = append(union.Names, name)
		}
	}
	for _, ip := range leaf.IPAddresses {
		if !slices.ContainsFunc(union.IPs, ip.Equal) {
			union.IPs = append(union.IPs, ip)
		}
	}
	return union
}

// age returns the time since the certificate was issued.
func age(certificate *x509.Certificate, now time.Time) time.Duration {
	return now.Sub(certificate.NotBefore) - clockSkew
}

// needsRenewal reports whether less than a third of the certificate's lifetime
// is left, or its validity has not started.
func needsRenewal(certificate *x509.Certificate, now time.Time) bool {
	lifetime := certificate.NotAfter.Sub(certificate.NotBefore)
	return now.Before(certificate.NotBefore) || certificate.NotAfter.Sub(now) < lifetime/3
}

func trusted(leaf *x509.Certificate, bundle []*x509.Certificate, now time.Time) bool {
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: pool(bundle), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return err == nil
}

func pool(certificates []*x509.Certificate) *x509.CertPool {
	all := x509.NewCertPool()
	for _, certificate := range certificates {
		all.AddCert(certificate)
	}
	return all
}

func covers(leaf *x509.Certificate, hosts spec.Hosts) bool {
	for _, name := range hosts.Names {
		if leaf.VerifyHostname(name) != nil {
			return false
		}
	}
	for _, ip := range hosts.IPs {
		if leaf.VerifyHostname(ip.String()) != nil {
			return false
		}
	}
	return true
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
