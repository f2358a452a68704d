package certs

import (
	"context"
	"fmt"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// Own is a certificate that Headwater issues and stores in a Secret. If several
// replicas write at once, the first one wins and the others read its result.
type Own struct {
	Client    kubernetes.Interface
	Namespace string
	Hosts     spec.Hosts
	Clock     clock.Clock
	Log       *zap.Logger
	// previous is the last known content, in case the Secret is deleted.
	previous *Material
}

func (o *Own) secret() (namespace, name string) { return o.Namespace, spec.CertificateSecret }

// credential renews the certificate in secret if that is due, and returns it
// once it is written. It returns nil if another replica wrote the Secret first;
// the watch event then triggers another call.
func (o *Own) credential(ctx context.Context, secret *corev1.Secret, settled settledFunc) (*credential, error) {
	var stored *Material
	if secret != nil {
		var err error
		if stored, err = decode(secret.Data); err != nil {
			o.Log.Warn("Secret with the webhook certificate is unusable; recreating the certificate",
				zap.String("secret", o.Namespace+"/"+spec.CertificateSecret), zap.Error(err))
		}
	}
	kept, done, err := Maintain(stored, o.previous, o.Hosts, settled, o.Clock.Now())
	if err != nil {
		return nil, fmt.Errorf("renew the webhook certificate: %w", err)
	}
	if len(done) > 0 {
		err := o.store(ctx, secret, kept)
		if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			o.Log.Debug("another replica wrote the webhook certificate first")
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("write Secret %s/%s: %w", o.Namespace, spec.CertificateSecret, err)
		}
		o.Log.Info("webhook certificate renewed", zap.Any("done", done), zap.Time("expires", kept.leaf.NotAfter))
	}
	o.previous = kept
	return kept.Credential(), nil
}

// store writes m to the Secret. secret is the current object, or nil to create
// one.
func (o *Own) store(ctx context.Context, secret *corev1.Secret, m *Material) error {
	data, err := m.encode()
	if err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Namespace: o.Namespace, Name: spec.CertificateSecret, Labels: mark.ManagedLabels()}
	return kube.PutSecret(ctx, o.Client, secret, &corev1.Secret{ObjectMeta: meta, Type: corev1.SecretTypeTLS, Data: data})
}
