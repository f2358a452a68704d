package certs

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// Own is a certificate that Headwater issues and stores in a Secret. If several
// replicas write at once, the first one wins and the others read its result.
type Own struct {
	Client    kubernetes.Interface
	Namespace string
	Hosts     spec.Hosts
	Events    interface{ Record(events.Event) }
	Clock     clock.Clock
	Log       *zap.Logger
	// previous is the last known content, in case the Secret is deleted.
	previous *Material
	// reported is the last reported problem, so that it is reported once.
	reported string
}

func (o *Own) secret() (namespace, name string) { return o.Namespace, spec.CertificateSecret }

// credential renews the certificate in secret if that is due, and returns it
// once it is written. With an error, or if another replica wrote the Secret first, it returns
// the stored one, if that is still valid; the watch event of the other's triggers another call.
func (o *Own) credential(ctx context.Context, secret *corev1.Secret, settled settledFunc) (*credential, error) {
	stored, now := o.read(secret), o.Clock.Now()
	kept, done, err := Maintain(stored, o.previous, o.Hosts, settled, now)
	if err == nil && len(done) > 0 {
		err = o.store(ctx, secret, kept)
		if err != nil && o.isOutdated(ctx, secret) {
			o.Log.Debug("another replica wrote the webhook certificate first", zap.Error(err))
			return o.valid(stored, now), nil
		}
	}
	switch {
	case err != nil:
		return o.notRenewed(secret, stored, now, err)
	case len(done) > 0:
		o.Log.Info("webhook certificate renewed", zap.Any("done", done), zap.Time("expires", kept.leaf.NotAfter))
	}
	o.previous, o.reported = kept, ""
	return kept.Credential(), nil
}

// isOutdated reports whether the API server has another Secret than secret, which is nil if
// there was none. What a write was denied with does not tell: any admission webhook can
// answer that there is a conflict.
func (o *Own) isOutdated(ctx context.Context, secret *corev1.Secret) bool {
	live, err := o.Client.CoreV1().Secrets(o.Namespace).Get(ctx, spec.CertificateSecret, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return secret != nil
	case err != nil:
		return false
	default:
		return secret == nil || live.UID != secret.UID || live.ResourceVersion != secret.ResourceVersion
	}
}

// valid is what serves stored, and nil unless that is valid.
func (o *Own) valid(stored *Material, now time.Time) *credential {
	if stored == nil || !stored.isValid(o.Hosts, now) {
		return nil
	}
	o.previous = stored
	return stored.Credential()
}

// read returns the content of secret; nil if there is none that can be used.
func (o *Own) read(secret *corev1.Secret) *Material {
	if secret == nil {
		return nil
	}
	stored, err := decode(secret.Data)
	if err != nil {
		o.Log.Warn("Secret with the webhook certificate is unusable; recreating the certificate",
			zap.String("secret", o.Namespace+"/"+spec.CertificateSecret), zap.Error(err))
		return nil
	}
	return stored
}

// notRenewed reports that what is due could not be done, and returns the stored certificate as long
// as that is valid: what is only due must not take away what works.
func (o *Own) notRenewed(secret *corev1.Secret, stored *Material, now time.Time, why error) (*credential, error) {
	why = fmt.Errorf("renew the webhook certificate in Secret %s/%s: %w", o.Namespace, spec.CertificateSecret, why)
	served, meanwhile := o.valid(stored, now), "there is no valid one to serve"
	if served != nil {
		meanwhile = "the stored one is served until " + stored.leaf.NotAfter.UTC().Format(time.RFC3339)
	}
	if note := meanwhile + "; trying again: " + why.Error(); o.reported != note {
		o.reported = note
		about := &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: o.Namespace, Name: spec.CertificateSecret}
		if secret != nil {
			about.UID = secret.UID
		}
		o.Events.Record(events.Event{About: about, Warning: true, Reason: "CertificateNotRenewed", Action: "Renew", Persisting: true, Note: note})
	}
	return served, why
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
