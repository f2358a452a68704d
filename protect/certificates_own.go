package protect

import (
	"context"
	"fmt"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// CertificateSecret holds the CA and the serving certificate that Headwater
// makes, in its own namespace. Deleting it replaces both, without a gap: the old
// CA stays trusted for a day.
const CertificateSecret = "headwater-webhook-tls"

// ownCertificates are made by Headwater. The first replica to write them wins.
type ownCertificates struct {
	client    kubernetes.Interface
	namespace string
	hosts     Hosts
	clock     clock.Clock
	log       *zap.Logger
	// previous is what was there last, for when the Secret is lost.
	previous *Material
}

func (o *ownCertificates) secret() (namespace, name string) { return o.namespace, CertificateSecret }

// credential reads the Secret, does what is due, and returns the result once it
// is written. A Secret that another replica wrote in between is read at the
// event that this causes.
func (o *ownCertificates) credential(ctx context.Context, secret *corev1.Secret, settled Settled) (*Credential, error) {
	var stored *Material
	if secret != nil {
		var err error
		if stored, err = Decode(secret.Data); err != nil {
			o.log.Warn("Secret with the webhook certificate is not usable, making it anew",
				zap.String("secret", o.namespace+"/"+CertificateSecret), zap.Error(err))
		}
	}
	kept, done, err := Maintain(stored, o.previous, o.hosts, settled, o.clock.Now())
	if err != nil {
		return nil, fmt.Errorf("renew the webhook certificate: %w", err)
	}
	if len(done) > 0 {
		err := o.store(ctx, secret, kept)
		if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			o.log.Debug("another replica wrote the webhook certificate first")
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("write Secret %s/%s: %w", o.namespace, CertificateSecret, err)
		}
		o.log.Info("webhook certificate renewed", zap.Any("done", done), zap.Time("expires", kept.Leaf.NotAfter))
	}
	o.previous = kept
	return kept.Credential(), nil
}

// store writes m over secret, which is nil when there is none.
func (o *ownCertificates) store(ctx context.Context, secret *corev1.Secret, m *Material) error {
	data, err := m.Encode()
	if err != nil {
		return err
	}
	secrets := o.client.CoreV1().Secrets(o.namespace)
	if secret == nil {
		_, err = secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: o.namespace, Name: CertificateSecret, Labels: mark.ManagedLabels(),
			},
			Type: corev1.SecretTypeTLS,
			Data: data,
		}, metav1.CreateOptions{FieldManager: mark.FieldManager})
		return err
	}
	secret = secret.DeepCopy()
	secret.Data = data
	_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: mark.FieldManager})
	return err
}
