package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissioninformers "k8s.io/client-go/informers/admissionregistration/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/protect/spec"
)

const (
	// renewalCheck is how often it is asked whether a certificate is due: a clock may have been put right.
	renewalCheck = time.Minute
	// DefaultSettle is how long a new CA is published, by default, before a
	// certificate that it signed is served.
	DefaultSettle = 10 * time.Minute
)

// errNoCertificate is the problem until the first certificate is available.
var errNoCertificate = errors.New("no certificate yet")

// Keeper maintains the certificate that the webhook serves and the CA bundle
// for the webhook configuration. Every replica runs one. Replicas agree through
// a Secret, which Headwater or another tool maintains.
type Keeper struct {
	client  kubernetes.Interface
	origin  Origin
	settle  time.Duration
	clock   clock.Clock
	metrics *Metrics
	log     *zap.Logger
	wake    loop.Wake

	mu        sync.Mutex
	wanted    *credential
	serving   *credential
	retired   []retired
	problem   error
	listeners []func()

	// OnRegistered is called with the webhook configuration whenever it may have
	// changed; nil if there is none. Set it before Run.
	OnRegistered func(*admissionregistrationv1.ValidatingWebhookConfiguration)

	// Used only by the loop.
	published publishedCAs
	bundles   string
}

// Origin is the source of the certificate: Own or Provided.
type Origin interface {
	// secret returns the namespace and name of the Secret with the certificate.
	secret() (namespace, name string)
	// credential returns the certificate to serve and the CAs to trust. secret
	// is nil if it does not exist. The result is nil if it is not known yet.
	// The error is an unusableError if the Secret cannot be used, until it changes. With
	// another error, which is tried again, the result is to be served meanwhile, if there is one.
	credential(ctx context.Context, secret *corev1.Secret, settled settledFunc) (*credential, error)
}

// unusableError is the reason why a certificate cannot be served. It quotes no
// data.
type unusableError struct{ error }

// Unwrap returns the wrapped error.
func (e unusableError) Unwrap() error { return e.error }

// retired are the CAs of a certificate that was served until recently.
type retired struct {
	roots []*x509.Certificate
	until time.Time
}

// NewKeeper returns a Keeper without certificates; Run loads them. settle is
// the maximum time until a published CA reaches every API server.
func NewKeeper(client kubernetes.Interface, origin Origin, settle time.Duration, clk clock.Clock, m *Metrics, log *zap.Logger) *Keeper {
	return &Keeper{
		client: client, origin: origin, settle: settle, clock: clk, metrics: m, log: log, wake: loop.NewWake(),
		problem: errNoCertificate, OnRegistered: func(*admissionregistrationv1.ValidatingWebhookConfiguration) {},
	}
}

// Serving returns the certificate to serve. It has the signature of
// tls.Config.GetCertificate.
func (c *Keeper) Serving(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.serving == nil {
		return nil, c.problem
	}
	return c.serving.TLS, nil
}

// Bundle returns the CAs that the API server must trust, as PEM: those of the
// next certificate, of the served one, and of one that another replica may
// still serve. It is nil while there is no certificate.
func (c *Keeper) Bundle() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wanted == nil {
		return nil
	}
	lists := [][]*x509.Certificate{c.wanted.roots, c.serving.roots}
	for _, old := range c.retired {
		lists = append(lists, old.roots)
	}
	return encodeCertificates(union(lists...))
}

// Ready returns an error if there is no valid certificate.
func (c *Keeper) Ready() error {
	c.mu.Lock()
	serving, problem := c.serving, c.problem
	c.mu.Unlock()
	if serving == nil {
		return problem
	}
	switch now, leaf := c.clock.Now(), serving.leaf(); {
	case now.After(leaf.NotAfter):
		return errors.Join(errors.New("the serving certificate has expired"), problem)
	case now.Before(leaf.NotBefore):
		return errors.Join(fmt.Errorf("the serving certificate is valid only from %s on: was the clock ahead when it was made?", leaf.NotBefore.UTC().Format(time.RFC3339)), problem)
	default:
		return nil
	}
}

// OnChange registers f, which is called when the certificates may have changed.
func (c *Keeper) OnChange(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listeners = append(c.listeners, f)
}

// Run maintains the certificates until ctx ends.
func (c *Keeper) Run(ctx context.Context) error {
	secrets, err := c.watch()
	if err != nil {
		return err
	}
	configurations, err := informers.NewWholeView[*admissionregistrationv1.ValidatingWebhookConfiguration]("webhook configuration",
		admissioninformers.NewFilteredValidatingWebhookConfigurationInformer(c.client, 0, cache.Indexers{}, informers.Named(spec.ConfigurationName)), c.wake.Notify, c.log)
	if err != nil {
		return err
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { secrets.Run(ctx) })
	watching.Go(func() { configurations.Run(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), configurations.HasSynced) {
		return nil
	}
	step := func(ctx context.Context) (time.Duration, error) {
		configuration, _ := configurations.Get("", spec.ConfigurationName)
		c.OnRegistered(configuration)
		c.observe(publishedBy(configuration))
		secret, err := c.read(ctx)
		if err != nil {
			c.adopt(nil, c.clock.Now())
			c.setProblem(err)
			return 0, err
		}
		return c.reconcile(ctx, secret)
	}
	loop.Loop{Wake: c.wake, Clock: c.clock, Log: c.log, Step: step}.Run(ctx)
	return nil
}

// read returns the Secret with the certificate; nil if it does not exist. Another Secret that
// cannot be decrypted makes lists and watches fail, but no get.
func (c *Keeper) read(ctx context.Context) (*corev1.Secret, error) {
	namespace, name := c.origin.secret()
	secret, err := c.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the certificate in Secret %s/%s: %w", namespace, name, err)
	}
	return secret, nil
}

// watch returns a view that wakes the loop when the Secret with the certificate changes.
func (c *Keeper) watch() (*informers.View[*corev1.Secret], error) {
	namespace, name := c.origin.secret()
	informer := coreinformers.NewFilteredSecretInformer(c.client, namespace, 0, cache.Indexers{}, informers.Named(name))
	return informers.NewWholeView[*corev1.Secret]("webhook certificate", informer, c.wake.Notify, c.log)
}

// observe stores the published bundles, and the time when they were first seen.
func (c *Keeper) observe(bundles []string) {
	seen := fmt.Sprintf("%q", bundles)
	if seen == c.bundles {
		return
	}
	c.bundles, c.published = seen, publishedCAs{since: c.clock.Now()}
	for _, bundle := range bundles {
		certificates, err := decodeCertificates([]byte(bundle))
		if err != nil { // tampered with; such a bundle trusts no certificate
			c.log.Debug("webhook configuration has an unreadable CA bundle", zap.Error(err))
		}
		c.published.bundles = append(c.published.bundles, certificates)
	}
}

// settled returns a settledFunc for the bundles that API servers trust at now.
func (c *Keeper) settled(now time.Time) settledFunc {
	return func(ca *x509.Certificate) bool {
		return c.published.contains(ca) && now.Sub(c.published.since) >= c.settle
	}
}

// reconcile applies the content of secret, which is nil if it does not exist.
// An unusable Secret changes nothing. Everything uses the same time, so that a
// transition that is too early now is still in the future for nextCheck.
func (c *Keeper) reconcile(ctx context.Context, secret *corev1.Secret) (requeueAfter time.Duration, err error) {
	now := c.clock.Now()
	wanted, err := c.origin.credential(ctx, secret, c.settled(now))
	c.adopt(wanted, now)
	if err != nil || wanted != nil {
		c.setProblem(err)
	}
	if err != nil && !errors.As(err, new(unusableError)) {
		return 0, err
	}
	return c.nextCheck(now), nil
}

// nextCheck returns the time from now until the next transition that depends on
// time alone.
func (c *Keeper) nextCheck(now time.Time) time.Duration {
	next, moments := renewalCheck, []time.Time{c.published.since.Add(c.settle)}
	for _, old := range c.retired {
		moments = append(moments, old.until)
	}
	for _, moment := range moments {
		if wait := moment.Sub(now); wait > 0 {
			next = min(next, wait)
		}
	}
	return next
}

func (c *Keeper) setProblem(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problem = why
}

// adopt stores wanted and serves it once it is trusted. If wanted is nil, it
// only applies transitions that depend on time.
func (c *Keeper) adopt(wanted *credential, now time.Time) {
	c.mu.Lock()
	if wanted == nil {
		wanted = c.wanted
	}
	next, last := chooseServing(c.serving, wanted, c.published, c.settle, now), c.serving
	if next == nil {
		c.mu.Unlock()
		return
	}
	if last != nil && !last.leaf().Equal(next.leaf()) {
		// Another replica may serve it until its own settle time has passed.
		c.retired = append(c.retired, retired{last.roots, now.Add(c.settle)})
		c.log.Info("serving a new certificate", zap.Time("expires", next.leaf().NotAfter))
	}
	c.retired = unexpired(c.retired, now)
	c.wanted, c.serving = wanted, next
	listeners := c.listeners
	c.mu.Unlock()
	serving, ca := next.expiries(now)
	c.metrics.expiry("ca", ca)
	c.metrics.expiry("serving", serving)
	for _, f := range listeners {
		f()
	}
}

func unexpired(all []retired, now time.Time) []retired {
	var due []retired
	for _, old := range all {
		if now.Before(old.until) {
			due = append(due, old)
		}
	}
	return due
}
