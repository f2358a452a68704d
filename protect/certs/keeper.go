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
	renewalCheck = time.Hour
	// DefaultSettle is how long a new CA is published, by default, before a
	// certificate of it is served.
	DefaultSettle = 10 * time.Minute
)

// errNoCertificate is what is wrong before the first certificate.
var errNoCertificate = errors.New("no certificate yet")

// Keeper keeps the certificate that the webhook serves, and the CAs
// that the webhook configuration publishes. Every replica runs one; they agree
// through a Secret, of Headwater's own or of somebody else.
type Keeper struct {
	client  kubernetes.Interface
	origin  Origin
	settle  time.Duration
	clock   clock.Clock
	metrics *Metrics
	log     *zap.Logger
	wake    loop.Wake

	mu        sync.Mutex
	wanted    *Credential
	serving   *Credential
	retired   []retired
	problem   error
	listeners []func()

	// Owned by the loop.
	published publishedCAs
	bundles   string
}

// Origin is where certificates come from.
type Origin interface {
	// secret is the namespace and name of the Secret that holds them.
	secret() (namespace, name string)
	// credential returns what is to be served and to be trusted by now. secret is
	// nil when there is none. It returns nil when that is not known yet, or for
	// the reason of an UnusableError.
	credential(ctx context.Context, secret *corev1.Secret, settled Settled) (*Credential, error)
}

// unusableError says why a certificate cannot be served. It quotes no key.
type unusableError struct{ error }

// Unwrap returns the fault itself.
func (e unusableError) Unwrap() error { return e.error }

// retired are CAs whose certificate was served until a moment ago.
type retired struct {
	roots []*x509.Certificate
	until time.Time
}

// NewKeeper returns a keeper of the certificates of origin that holds
// nothing until it runs. settle is how long API servers take at most to hear of
// a CA.
func NewKeeper(client kubernetes.Interface, origin Origin, settle time.Duration, clk clock.Clock, m *Metrics, log *zap.Logger) *Keeper {
	return &Keeper{
		client: client, origin: origin, settle: settle, clock: clk, metrics: m, log: log, wake: loop.NewWake(),
		problem: errNoCertificate,
	}
}

// Serving returns the serving certificate, for tls.Config.GetCertificate.
func (c *Keeper) Serving(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.serving == nil {
		return nil, c.problem
	}
	return c.serving.TLS, nil
}

// Bundle returns the CAs that the API server must trust, in PEM: those of the
// certificate to come, of the one that is served, and of one that another
// replica may still serve. It is nil while there is none.
func (c *Keeper) Bundle() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wanted == nil {
		return nil
	}
	lists := [][]*x509.Certificate{c.wanted.Roots, c.serving.Roots}
	for _, old := range c.retired {
		lists = append(lists, old.roots)
	}
	return encodeCertificates(union(lists...))
}

// Ready returns nil while there is a certificate that has not expired.
func (c *Keeper) Ready() error {
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
func (c *Keeper) OnChange(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listeners = append(c.listeners, f)
}

// Run keeps the certificates until ctx ends.
func (c *Keeper) Run(ctx context.Context) error {
	secrets, err := c.watch()
	if err != nil {
		return err
	}
	configurations, err := informers.NewWholeView[*admissionregistrationv1.ValidatingWebhookConfiguration]("webhook configuration",
		admissioninformers.NewFilteredValidatingWebhookConfigurationInformer(c.client, 0, cache.Indexers{}, informers.Named(spec.ConfigurationName)), c.wake.Up, c.log)
	if err != nil {
		return err
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { secrets.Run(ctx) })
	watching.Go(func() { configurations.Run(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), secrets.HasSynced, configurations.HasSynced) {
		return nil
	}
	step := func(ctx context.Context) (time.Duration, error) {
		configuration, _ := configurations.Get("", spec.ConfigurationName)
		c.observe(publishedBy(configuration))
		namespace, name := c.origin.secret()
		secret, _ := secrets.Get(namespace, name)
		return c.reconcile(ctx, secret)
	}
	loop.Loop{Wake: c.wake, Clock: c.clock, Log: c.log, Step: step}.Run(ctx)
	return nil
}

func (c *Keeper) watch() (*informers.View[*corev1.Secret], error) {
	namespace, name := c.origin.secret()
	informer := coreinformers.NewFilteredSecretInformer(c.client, namespace, 0, cache.Indexers{}, informers.Named(name))
	return informers.NewWholeView[*corev1.Secret]("webhook certificate", informer, c.wake.Up, c.log)
}

// observe starts the clock of a bundle when it is first seen.
func (c *Keeper) observe(bundles []string) {
	seen := fmt.Sprintf("%q", bundles)
	if seen == c.bundles {
		return
	}
	c.bundles, c.published = seen, publishedCAs{since: c.clock.Now()}
	for _, bundle := range bundles {
		certificates, err := decodeCertificates([]byte(bundle))
		if err != nil { // somebody tampers; nobody is trusted meanwhile
			c.log.Debug("webhook configuration holds a CA bundle that cannot be read", zap.Error(err))
		}
		c.published.bundles = append(c.published.bundles, certificates)
	}
}

// settled says what API servers trust at that moment.
func (c *Keeper) settled(now time.Time) Settled {
	return func(ca *x509.Certificate) bool {
		return c.published.contains(ca) && now.Sub(c.published.since) >= c.settle
	}
}

// reconcile puts in force what is in secret, which is nil when there is none.
// What cannot be used changes nothing. All of it happens at one moment: what is
// too early now must be ahead of the next look.
func (c *Keeper) reconcile(ctx context.Context, secret *corev1.Secret) (requeueAfter time.Duration, err error) {
	now := c.clock.Now()
	wanted, err := c.origin.credential(ctx, secret, c.settled(now))
	var unusable unusableError
	switch {
	case errors.As(err, &unusable):
		c.setProblem(unusable)
	case err != nil:
		return 0, err
	}
	c.adopt(wanted, now)
	return c.nextCheck(now), nil
}

// nextCheck is how long after now time alone changes something.
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

func (c *Keeper) setProblem(why unusableError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problem = why
}

// adopt has wanted served as soon as it is trusted; nil changes nothing but
// what time does.
func (c *Keeper) adopt(wanted *Credential, now time.Time) {
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
		// Another replica may serve it for as long again.
		c.retired = append(c.retired, retired{last.Roots, now.Add(c.settle)})
		c.log.Info("another certificate is served from now on", zap.Time("expires", next.leaf().NotAfter))
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
