package certs

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/keypair"
	"github.com/headwater-k8s/headwater/internal/kube/events"
)

// Provided reads the certificate from a Secret that another tool, such as
// cert-manager, maintains. It never writes the Secret.
type Provided struct {
	Namespace, Name string
	// Host is the host name that the API server verifies.
	Host    string
	Events  interface{ Record(events.Event) }
	Clock   clock.Clock
	Metrics *Metrics
	Log     *zap.Logger
	// reported is the last reported problem, so that it is reported once.
	reported string
}

func (p *Provided) secret() (namespace, name string) { return p.Namespace, p.Name }

func (p *Provided) credential(_ context.Context, secret *corev1.Secret, _ settledFunc) (*credential, error) {
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

func (p *Provided) read(secret *corev1.Secret) (*credential, error) {
	if secret == nil {
		return nil, errors.New("does not exist; create it, or correct protect.certificates.secretName in the configuration")
	}
	credential, err := decodeCredential(secret.Data)
	if err != nil {
		return nil, err
	}
	if _, err := credential.verify(credential.roots, p.Host, p.Clock.Now()); err != nil {
		return nil, fmt.Errorf("%s: the API server would reject it: %w", fieldLeaf, err)
	}
	return credential, nil
}

func (p *Provided) report(secret *corev1.Secret, err error) {
	p.Log.Error("webhook certificate is unusable; serving the last valid one", zap.Error(err))
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: p.Namespace, Name: p.Name}
	if secret != nil {
		about.UID = secret.UID
	}
	p.Events.Record(events.Event{
		About: about, Warning: true, Reason: "CertificateUnusable", Action: "Serve", Persisting: true,
		Note: "serving the last valid certificate: " + err.Error(),
	})
}

// decodeCredential reads a Secret of type kubernetes.io/tls. The trusted CAs
// are in ca.crt; without it, a self-signed tls.crt is its own CA. Errors quote
// no data.
func decodeCredential(data map[string][]byte) (*credential, error) {
	chain, err := decodeCertificates(data[fieldLeaf])
	if err != nil {
		return nil, fmt.Errorf("%s %w", fieldLeaf, err)
	}
	if len(data[fieldLeafKey]) == 0 {
		return nil, fmt.Errorf("%s holds no private key in PEM", fieldLeafKey)
	}
	pair, err := keypair.Parse(data[fieldLeaf], data[fieldLeafKey])
	if err != nil {
		return nil, fmt.Errorf("%s does not match %s or is unreadable", fieldLeafKey, fieldLeaf)
	}
	roots := selfSigned(chain)
	if len(data[fieldBundle]) > 0 {
		if roots, err = decodeCertificates(data[fieldBundle]); err != nil {
			return nil, fmt.Errorf("%s %w", fieldBundle, err)
		}
	}
	if len(roots) == 0 {
		return nil, fmt.Errorf("%s is missing and %s is not self-signed; add the CA that signed it", fieldBundle, fieldLeaf)
	}
	pair.Leaf = chain[0]
	return &credential{TLS: &pair, roots: roots}, nil
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
