package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/kube/events"
)

// Provided are somebody else's, such as cert-manager's, and never
// written.
type Provided struct {
	Namespace, Name string
	// host is the name by which the API server calls.
	Host    string
	Events  interface{ Record(events.Event) }
	Clock   clock.Clock
	Metrics *Metrics
	Log     *zap.Logger
	// reported is what is known to be wrong, so that it is told once.
	reported string
}

func (p *Provided) secret() (namespace, name string) { return p.Namespace, p.Name }

func (p *Provided) credential(_ context.Context, secret *corev1.Secret, _ Settled) (*Credential, error) {
	credential, err := p.read(secret)
	if err == nil {
		p.Metrics.valid.Set(1)
		p.reported = ""
		return credential, nil
	}
	err = fmt.Errorf("certificate in Secret %s/%s: %w", p.Namespace, p.Name, err)
	p.Metrics.valid.Set(0)
	if p.reported != err.Error() {
		p.reported = err.Error()
		p.report(secret, err)
	}
	return nil, unusableError{err}
}

func (p *Provided) read(secret *corev1.Secret) (*Credential, error) {
	if secret == nil {
		return nil, errors.New("does not exist; protect.certificates.secretName of the configuration names it")
	}
	credential, err := decodeCredential(secret.Data)
	if err != nil {
		return nil, err
	}
	if _, err := credential.verify(credential.Roots, p.Host, p.Clock.Now()); err != nil {
		return nil, fmt.Errorf("%s: the API server would not accept it: %w", fieldLeaf, err)
	}
	return credential, nil
}

func (p *Provided) report(secret *corev1.Secret, err error) {
	p.Log.Error("webhook certificate is not usable, the last good one stays in force", zap.Error(err))
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: p.Namespace, Name: p.Name}
	if secret != nil {
		about.UID = secret.UID
	}
	p.Events.Record(events.Event{
		About: about, Warning: true, Reason: "CertificateUnusable", Action: "Serve", Persisting: true,
		Note: "the last good one stays in force: " + err.Error(),
	})
}

// decodeCredential reads a Secret of type kubernetes.io/tls, with the CAs to
// trust in ca.crt. Without these, tls.crt itself is trusted where it is signed
// by itself. Its errors quote nothing.
func decodeCredential(data map[string][]byte) (*Credential, error) {
	chain, err := decodeCertificates(data[fieldLeaf])
	if err != nil {
		return nil, fmt.Errorf("%s %w", fieldLeaf, err)
	}
	if len(data[fieldLeafKey]) == 0 {
		return nil, fmt.Errorf("%s holds no private key in PEM", fieldLeafKey)
	}
	pair, err := tls.X509KeyPair(data[fieldLeaf], data[fieldLeafKey])
	if err != nil {
		return nil, fmt.Errorf("%s is not the key of %s, or cannot be read", fieldLeafKey, fieldLeaf)
	}
	roots := selfSigned(chain)
	if len(data[fieldBundle]) > 0 {
		if roots, err = decodeCertificates(data[fieldBundle]); err != nil {
			return nil, fmt.Errorf("%s %w", fieldBundle, err)
		}
	}
	if len(roots) == 0 {
		return nil, fmt.Errorf("%s is missing, and %s is not signed by itself: add the CA that signed it", fieldBundle, fieldLeaf)
	}
	pair.Leaf = chain[0]
	return &Credential{TLS: &pair, Roots: roots}, nil
}

func selfSigned(chain []*x509.Certificate) []*x509.Certificate {
	var roots []*x509.Certificate
	for _, certificate := range chain {
		if bytes.Equal(certificate.RawIssuer, certificate.RawSubject) {
			roots = append(roots, certificate)
		}
	}
	return roots
}
