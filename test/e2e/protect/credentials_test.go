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

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// byToken is a client with a token of the service account, which it makes. Unlike
// who is impersonated, it is told from others with the name by the token's id.
func (e *env) byToken(namespace, name string) kubernetes.Interface {
	e.Helper()
	accounts := e.Admin.CoreV1().ServiceAccounts(namespace)
	_, err := accounts.Create(e.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(e, err)
	request, err := accounts.CreateToken(e.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(e, err)
	return e.with(func(config *rest.Config) { config.BearerToken = request.Status.Token })
}

// byCertificate is a client with a certificate that the cluster's signer gives
// to user.
func (e *env) byCertificate(user string, groups ...string) kubernetes.Interface {
	e.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(e, err)
	subject := x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: groups}}
	asked, err := x509.CreateCertificateRequest(rand.Reader, &subject, key)
	require.NoError(e, err)
	private, err := x509.MarshalECPrivateKey(key)
	require.NoError(e, err)
	certificate := e.signed(user, inPEM("CERTIFICATE REQUEST", asked))
	return e.with(func(config *rest.Config) {
		config.CertData, config.KeyData = certificate, inPEM("EC PRIVATE KEY", private)
	})
}

// signed has the controller manager sign a request for a client's certificate.
func (e *env) signed(name string, asked []byte) (certificate []byte) {
	e.Helper()
	requests := e.Admin.CertificatesV1().CertificateSigningRequests()
	request, err := requests.Create(e.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: asked, SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature},
		},
	}, metav1.CreateOptions{})
	require.NoError(e, err)
	e.Cleanup(func() { _ = requests.Delete(context.WithoutCancel(e.Context()), name, metav1.DeleteOptions{}) })
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "ByTheTest"},
	}
	_, err = requests.UpdateApproval(e.Context(), name, request, metav1.UpdateOptions{})
	require.NoError(e, err)
	e.Eventually(func(ctx context.Context) error {
		request, err := requests.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if certificate = request.Status.Certificate; len(certificate) == 0 {
			return errors.New("nobody has signed the request")
		}
		return nil
	})
	return certificate
}

// with is a client that says by itself who it is.
func (e *env) with(credentials func(*rest.Config)) kubernetes.Interface {
	e.Helper()
	config := e.Config("")
	config.BearerToken = ""
	credentials(config)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(e, err)
	return client
}

func inPEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
