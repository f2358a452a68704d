package protect

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
	"github.com/headwater-k8s/headwater/test/seed"
)

const (
	defaultRotations = 10
	givenSecret      = "webhook-cert"
)

func TestReplicasThatStartAtOnceAgreeOnOneCA(t *testing.T) {
	e := newEnv(t)
	e.Sections = byTheWebhookAlone
	r, _, mallory := e.behindTheService("first")
	ctx := t.Context()
	require.NoError(t, lab.IgnoreGone(e.Admin.CoreV1().Secrets(lab.Namespace).Delete(ctx, certificateSecret, metav1.DeleteOptions{})))
	require.NoError(t, lab.IgnoreGone(e.Admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, webhookConfiguration, metav1.DeleteOptions{})))
	mark := e.Cluster.Mark()
	for range 3 {
		r.launch()
	}
	r.ready()
	e.protected(mallory, "first-src", "shared")
	require.NoError(t, r.serve(ctx, e.Get(lab.Namespace, certificateSecret)))
	written, err := e.Cluster.Since(ctx, mark, func(r cluster.Request) bool {
		return r.Resource == "secrets" && r.Name == certificateSecret && r.IsWrite() && r.Code < 300
	})
	require.NoError(t, err)
	require.Len(t, written, 1, "the first writer wins, and nobody writes over it")
	t.Run("emptied, it is recreated and the old CA stays trusted", func(t *testing.T) {
		before := e.Get(lab.Namespace, certificateSecret)
		e.Edit(lab.Namespace, certificateSecret, func(s *corev1.Secret) {
			s.Data = map[string][]byte{corev1.TLSCertKey: {}, corev1.TLSPrivateKeyKey: {}}
		})
		require.NoError(t, lab.Eventually(ctx, func(context.Context) error {
			if err := rotated(before, e.Get(lab.Namespace, certificateSecret)); err != nil {
				return err
			}
			return r.serve(ctx, e.Get(lab.Namespace, certificateSecret))
		}))
		e.protected(mallory, "first-src", "shared")
	})
}

func TestACertificateThatCannotBeRenewedIsServedAsLongAsItIsValid(t *testing.T) {
	e := newEnv(t)
	e.Sections = byTheWebhookAlone
	r, _, mallory := e.behindTheService("refused")
	ctx := t.Context()
	require.NoError(t, lab.IgnoreGone(e.Admin.CoreV1().Secrets(lab.Namespace).Delete(ctx, certificateSecret, metav1.DeleteOptions{})))
	e.Create(lab.Namespace, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: certificateSecret, Labels: mark.ManagedLabels()},
		Type:       corev1.SecretTypeTLS, Data: newAuthority(t).own(t, time.Hour),
	})
	due := e.Get(lab.Namespace, certificateSecret)
	allow := e.refuseRenewal()
	one := r.launch()
	r.ready()
	require.NoError(t, r.serve(ctx, due))
	note := e.HasEvent(lab.Namespace, certificateSecret, "CertificateNotRenewed")
	require.Contains(t, note, "the stored one is served until ")
	require.Contains(t, note, "refused by the test")
	e.protected(mallory, "refused-src", "shared")
	allow()
	renewed := func() {
		t.Helper()
		e.Eventually(func(ctx context.Context) error {
			stored := e.Get(lab.Namespace, certificateSecret)
			if stored == nil {
				return errors.New("the Secret was not read")
			}
			return errors.Join(lab.ErrorIf(string(stored.Data[corev1.TLSCertKey]) == string(due.Data[corev1.TLSCertKey]), "not renewed"), r.serve(ctx, stored))
		})
	}
	renewed()
	r.stop(one)

	t.Log("one that has expired is no certificate, and readiness says why there is no other")
	e.Edit(lab.Namespace, certificateSecret, func(s *corev1.Secret) { s.Data = newAuthority(t).own(t, -time.Minute) })
	due = e.Get(lab.Namespace, certificateSecret)
	allow = e.refuseRenewal()
	one = r.launch()
	e.Eventually(func(ctx context.Context) error {
		err := one.Ready(shortly(ctx, t))
		return lab.ErrorIf(err == nil || !strings.Contains(err.Error(), "refused by the test"), "ready, or readiness does not say why not: %w", err)
	})
	allow()
	r.ready()
	renewed()
	e.protected(mallory, "refused-src", "shared")
}

// refuseRenewal makes the API server refuse updates of the certificate, until allow.
func (e *env) refuseRenewal() (allow func()) {
	e.Helper()
	allow = e.Policy(metav1.ObjectMeta{Name: "refuse-renewal"}, admissionregistrationv1.Update, "", "secrets", fmt.Sprintf("object.metadata.name != %q", certificateSecret))
	e.Eventually(func(ctx context.Context) error {
		_, err := e.Admin.CoreV1().Secrets(lab.Namespace).Patch(ctx, certificateSecret, types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"probe":"x"}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return lab.ErrorIf(err == nil, "not refused yet")
	})
	return allow
}

func TestARotationOfTheCAFailsNoWriteAndNoHandshake(t *testing.T) {
	e := newEnv(t)
	rotations := seed.Number(t, "HEADWATER_ROTATIONS", defaultRotations)
	e.Sections = byTheWebhookAlone
	r, owner, mallory := e.behindTheService("rotate")
	for range 2 {
		r.launch()
	}
	r.ready()
	e.protectedByWebhook(mallory, "rotate-src", "shared")
	load := e.newTraffic("rotate-src", "shared", "other", owner, mallory)
	r.handshakes(load, caSettle/4)
	for range rotations {
		before := e.Get(lab.Namespace, certificateSecret)
		require.NoError(t, e.Admin.CoreV1().Secrets(lab.Namespace).Delete(t.Context(), certificateSecret, metav1.DeleteOptions{}))
		e.Eventually(func(ctx context.Context) error {
			after := e.Get(lab.Namespace, certificateSecret)
			if err := rotated(before, after); err != nil {
				return err
			}
			return r.serve(ctx, after)
		})
	}
	load.ends(e)
}

func TestACertificateOfSomebodyElseIsSwappedUnderLoad(t *testing.T) {
	e := newEnv(t)
	e.Sections = "protect: {engine: Webhook, certificates: {secretName: " + givenSecret + "}}\n"
	r, owner, mallory := e.behindTheService("given")
	ctx := t.Context()
	require.NoError(t, lab.IgnoreGone(e.Admin.CoreV1().Secrets(lab.Namespace).Delete(ctx, certificateSecret, metav1.DeleteOptions{})))
	ca := newAuthority(t)
	given := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: givenSecret}, Type: corev1.SecretTypeTLS, Data: ca.issue(t, webhookHost, time.Hour),
	}
	mark := e.Cluster.Mark()
	first := r.launch()
	r.launch()
	e.Eventually(func(ctx context.Context) error {
		err := first.Ready(shortly(ctx, t))
		return lab.ErrorIf(err == nil || !strings.Contains(err.Error(), givenSecret+": does not exist"), "ready without a certificate, or not for lack of it: %w", err)
	})
	e.Create(lab.Namespace, given)
	e.Cleanup(func() {
		_ = e.Admin.CoreV1().Secrets(lab.Namespace).Delete(context.WithoutCancel(ctx), givenSecret, metav1.DeleteOptions{})
	})
	r.ready()
	e.protectedByWebhook(mallory, "given-src", "shared")
	load := e.newTraffic("given-src", "shared", "other", owner, mallory)
	r.handshakes(load, caSettle/4)
	swap := func(data map[string][]byte) *corev1.Secret {
		e.Edit(lab.Namespace, givenSecret, func(s *corev1.Secret) { s.Data = data })
		return e.Get(lab.Namespace, givenSecret)
	}
	other := newAuthority(t)
	for sentence, data := range map[string]map[string][]byte{
		"renewed by the same CA":  ca.issue(t, webhookHost, time.Hour),
		"issued by another CA":    other.issue(t, webhookHost, time.Hour),
		"signed by itself":        newAuthority(t).itself(t),
		"issued by yet another":   newAuthority(t).issue(t, webhookHost, time.Hour),
		"issued by the old again": ca.issue(t, webhookHost, time.Hour),
	} {
		t.Log(sentence)
		wanted := swap(data)
		e.Eventually(func(ctx context.Context) error {
			if err := r.serve(ctx, wanted); err != nil {
				return fmt.Errorf("%s: %w", sentence, err)
			}
			return nil
		})
	}
	t.Log("a new CA alone is published in the end")
	last := swap(other.issue(t, webhookHost, time.Hour))
	lab.Until(e, e.Admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get, webhookConfiguration, func(live *admissionregistrationv1.ValidatingWebhookConfiguration) error {
		return lab.ErrorIf(string(live.Webhooks[0].ClientConfig.CABundle) != string(last.Data["ca.crt"]), "another bundle is published")
	})
	e.Eventually(func(ctx context.Context) error { return r.serve(ctx, last) })
	t.Log("what cannot be used changes nothing")
	swap(ca.issue(t, "elsewhere.svc", time.Hour))
	e.HasEvent(lab.Namespace, givenSecret, "CertificateUnusable")
	for _, one := range r.all() {
		e.HasMetric(one, 0, "headwater_protection_certificate_valid", nil)
	}
	e.Holds(2*caSettle, func(ctx context.Context) error { return r.serve(ctx, last) })
	load.ends(e)
	written, err := e.Cluster.Since(ctx, mark, func(r cluster.Request) bool {
		return r.User == lab.ServiceAccount && r.Resource == "secrets" && r.Namespace == lab.Namespace && r.IsWrite()
	})
	require.NoError(t, err)
	for _, request := range written {
		require.NotContains(t, []string{givenSecret, certificateSecret}, request.Name, "Headwater writes no certificate")
	}
}

// serve is nil when every replica serves the certificate of secret.
func (r *replicas) serve(ctx context.Context, secret *corev1.Secret) error {
	if secret == nil {
		return errors.New("there is no Secret")
	}
	for _, one := range r.all() {
		if err := serves(ctx, one.WebhookAddress(), secret.Data[corev1.TLSCertKey]); err != nil {
			return err
		}
	}
	return nil
}

// rotated is nil when after has a new CA, and a certificate signed by that.
func rotated(before, after *corev1.Secret) error {
	if before == nil || after == nil {
		return errors.New("there is no Secret")
	}
	block, _ := pem.Decode(after.Data["ca.crt"])
	leaf, _ := pem.Decode(after.Data[corev1.TLSCertKey])
	if block == nil || leaf == nil || strings.HasPrefix(string(before.Data["ca.crt"]), string(pem.EncodeToMemory(block))) {
		return errors.New("there is no new CA")
	}
	ca, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err
	}
	certificate, err := x509.ParseCertificate(leaf.Bytes)
	if err != nil {
		return err
	}
	return certificate.CheckSignatureFrom(ca)
}

// authority plays cert-manager.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	certificate, _ := signed(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority " + rand.Text()}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotAfter: time.Now().Add(time.Hour),
	}, nil, key, key)
	return &authority{certificate, key}
}

// issue returns the data of a Secret.
func (a *authority) issue(t *testing.T, host string, lifetime time.Duration) map[string][]byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	_, leaf := signed(t, &x509.Certificate{DNSNames: []string{host}, NotAfter: time.Now().Add(lifetime)}, a.certificate, key, a.key)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
	return map[string][]byte{corev1.TLSCertKey: leaf, corev1.TLSPrivateKeyKey: keyPEM(t, key), "ca.crt": ca}
}

// own returns the data of the Secret in which Headwater keeps a certificate of its own. It is
// valid for left of what were ten hours.
func (a *authority) own(t *testing.T, left time.Duration) map[string][]byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	service, _ := strings.CutSuffix(webhookHost, ".svc")
	names, ends := []string{service, webhookHost, webhookHost + ".cluster.local"}, time.Now().Add(left)
	_, leaf := signed(t, &x509.Certificate{DNSNames: names, NotBefore: ends.Add(-10 * time.Hour), NotAfter: ends}, a.certificate, key, a.key)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
	return map[string][]byte{corev1.TLSCertKey: leaf, corev1.TLSPrivateKeyKey: keyPEM(t, key), "ca.crt": ca, "ca.key": keyPEM(t, a.key)}
}

// itself returns the data of a Secret without a CA.
func (a *authority) itself(t *testing.T) map[string][]byte {
	t.Helper()
	_, leaf := signed(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "webhook"}, DNSNames: []string{webhookHost}, NotAfter: time.Now().Add(time.Hour),
	}, nil, a.key, a.key)
	return map[string][]byte{corev1.TLSCertKey: leaf, corev1.TLSPrivateKeyKey: keyPEM(t, a.key)}
}

// signed signs template, which is valid from now on unless it says otherwise; a nil parent is
// template itself.
func signed(t *testing.T, template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (certificate *x509.Certificate, encoded []byte) {
	t.Helper()
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	if template.NotBefore.IsZero() {
		template.NotBefore = time.Now().Add(-time.Minute)
	}
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	require.NoError(t, err)
	certificate, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyPEM(t *testing.T, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// shortly is long enough for a probe.
func shortly(ctx context.Context, t *testing.T) context.Context {
	t.Helper()
	bounded, cancel := context.WithTimeout(ctx, time.Second)
	t.Cleanup(cancel)
	return bounded
}
