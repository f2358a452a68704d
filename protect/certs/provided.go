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
	// told is what is known to be wrong, so that it is told once.
	told string
}

func (g *Provided) secret() (namespace, name string) { return g.Namespace, g.Name }

func (g *Provided) credential(_ context.Context, secret *corev1.Secret, _ Settled) (*Credential, error) {
	credential, err := g.read(secret)
	if err == nil {
		g.Metrics.valid.Set(1)
		g.told = ""
		return credential, nil
	}
	err = fmt.Errorf("certificate in Secret %s/%s: %w", g.Namespace, g.Name, err)
	g.Metrics.valid.Set(0)
	if g.told != err.Error() {
		g.told = err.Error()
		g.tell(secret, err)
	}
	return nil, UnusableError{err}
}

func (g *Provided) read(secret *corev1.Secret) (*Credential, error) {
	if secret == nil {
		return nil, errors.New("does not exist; protect.certificates.secretName of the configuration names it")
	}
	credential, err := decodeCredential(secret.Data)
	if err != nil {
		return nil, err
	}
	if _, err := credential.verify(credential.Roots, g.Host, g.Clock.Now()); err != nil {
		return nil, fmt.Errorf("%s: the API server would not accept it: %w", fieldLeaf, err)
	}
	return credential, nil
}

func (g *Provided) tell(secret *corev1.Secret, err error) {
	g.Log.Error("webhook certificate is not usable, the last good one stays in force", zap.Error(err))
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: g.Namespace, Name: g.Name}
	if secret != nil {
		about.UID = secret.UID
	}
	g.Events.Record(events.Event{
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
