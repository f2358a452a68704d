package protect

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/mark"
)

// CertificateSecret holds the webhook's CA and serving certificate, in
// Headwater's own namespace. Deleting it replaces both, without a gap, within
// about a day; until then the old CA stays trusted.
const CertificateSecret = "headwater-webhook-tls"

const renewalCheck = time.Hour

// CertificateKeeper keeps the webhook's certificate in its Secret. Every replica
// runs one: they agree through the Secret, the first writer wins.
type CertificateKeeper struct {
	client    kubernetes.Interface
	namespace string
	hosts     Hosts
	clock     clock.Clock
	metrics   *metrics
	log       *zap.Logger
	wake      wake

	mu        sync.Mutex
	current   *Material
	serving   *tls.Certificate
	listeners []func()
}

// NewCertificateKeeper returns a keeper for hosts, in namespace, that holds
// nothing until it runs.
func NewCertificateKeeper(client kubernetes.Interface, namespace string, hosts Hosts, clk clock.Clock, m *metrics, log *zap.Logger) *CertificateKeeper {
	return &CertificateKeeper{
		client: client, namespace: namespace, hosts: hosts, clock: clk, metrics: m, log: log, wake: newWake(),
	}
}

// Serving returns the serving certificate, for tls.Config.GetCertificate.
func (c *CertificateKeeper) Serving(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.serving == nil {
		return nil, errors.New("no certificate yet")
	}
	return c.serving, nil
}

// Bundle returns the CAs that the API server must trust, in PEM; nil while
// there is no certificate.
func (c *CertificateKeeper) Bundle() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		return nil
	}
	return c.current.BundlePEM()
}

// Ready returns nil while there is a certificate that has not expired.
func (c *CertificateKeeper) Ready() error {
	serving, err := c.Serving(nil)
	if err != nil {
		return err
	}
	if c.clock.Now().After(serving.Leaf.NotAfter) {
		return errors.New("the serving certificate has expired")
	}
	return nil
}

// OnChange calls f whenever the certificates may have changed.
func (c *CertificateKeeper) OnChange(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listeners = append(c.listeners, f)
}

// Run keeps the Secret until ctx ends.
func (c *CertificateKeeper) Run(ctx context.Context) error {
	view, err := c.watch()
	if err != nil {
		return err
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { view.Run(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), view.HasSynced) {
		return nil
	}
	step := func(ctx context.Context) (time.Duration, error) { return renewalCheck, c.reconcile(ctx, view) }
	loop{wake: c.wake, clock: c.clock, log: c.log, step: step}.run(ctx)
	return nil
}

func (c *CertificateKeeper) watch() (*kube.View[*corev1.Secret], error) {
	informer := coreinformers.NewFilteredSecretInformer(c.client, c.namespace, 0, cache.Indexers{},
		func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, CertificateSecret).String()
		})
	view, err := kube.NewView("webhook certificate", informer, c.log, func(obj any) (*corev1.Secret, error) {
		return nil, fmt.Errorf("object of type %T is not a Secret", obj)
	})
	if err != nil {
		return nil, err
	}
	_, err = view.OnChange(func(kube.Change[*corev1.Secret]) { c.wake.up() })
	return view, err
}

// reconcile reads the Secret, does what is due, and puts the result in force
// once it is written. A Secret that another replica wrote in between is read
// at the event that this causes.
func (c *CertificateKeeper) reconcile(ctx context.Context, view *kube.View[*corev1.Secret]) error {
	secret, found := view.Get(c.namespace, CertificateSecret)
	var stored *Material
	if found {
		var err error
		if stored, err = Decode(secret.Data); err != nil {
			c.log.Warn("Secret with the webhook certificate is not usable, making it anew",
				zap.String("secret", c.namespace+"/"+CertificateSecret), zap.Error(err))
		}
	}
	kept, done, err := Maintain(stored, c.previous(), c.hosts, c.clock.Now())
	if err != nil {
		return fmt.Errorf("renew the webhook certificate: %w", err)
	}
	if len(done) > 0 {
		err := c.store(ctx, secret, kept)
		if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			c.log.Debug("another replica wrote the webhook certificate first")
			return nil
		}
		if err != nil {
			return fmt.Errorf("write Secret %s/%s: %w", c.namespace, CertificateSecret, err)
		}
		c.log.Info("webhook certificate renewed", zap.Any("done", done), zap.Time("expires", kept.Leaf.NotAfter))
	}
	c.adopt(kept)
	return nil
}

// store writes m over secret, which is nil when there is none.
func (c *CertificateKeeper) store(ctx context.Context, secret *corev1.Secret, m *Material) error {
	data, err := m.Encode()
	if err != nil {
		return err
	}
	secrets := c.client.CoreV1().Secrets(c.namespace)
	if secret == nil {
		_, err = secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: c.namespace, Name: CertificateSecret, Labels: map[string]string{managedByLabel: managedBy},
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

func (c *CertificateKeeper) previous() *Material {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

func (c *CertificateKeeper) adopt(m *Material) {
	c.mu.Lock()
	c.current, c.serving = m, m.TLS()
	listeners := c.listeners
	c.mu.Unlock()
	c.metrics.expiry("ca", m.Bundle[0].NotAfter)
	c.metrics.expiry("serving", m.Leaf.NotAfter)
	for _, f := range listeners {
		f()
	}
}
