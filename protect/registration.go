package protect

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	admissioninformers "k8s.io/client-go/informers/admissionregistration/v1"
	"k8s.io/client-go/kubernetes"
	admissionclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/rules"
)

const (
	// repairInterval bounds how often a configuration is restored that
	// somebody else keeps changing.
	repairInterval = time.Second
	readyInterval  = 200 * time.Millisecond
)

// Registration keeps the ValidatingWebhookConfiguration as the rules ask for.
// One replica runs it, the leader.
type Registration struct {
	client   kubernetes.Interface
	rules    *rules.Live[Rule]
	identity *Identity
	endpoint Endpoint
	// bundle returns the CAs to trust, nil while there is none; ready reports
	// whether reviews are answered.
	bundle  func() []byte
	ready   func() bool
	clock   clock.Clock
	metrics *metrics
	log     *zap.Logger
	wake    wake

	// Owned by the loop.
	view       *kube.View[*admissionregistrationv1.ValidatingWebhookConfiguration]
	watching   sync.WaitGroup
	applied    *admissionregistrationv1.ValidatingWebhookConfiguration
	repairedAt time.Time
	// removed was deleted by us, and may still be in the cache.
	removed types.UID
}

// Changed makes the registration look again.
func (r *Registration) Changed() { r.wake.up() }

// Run keeps the configuration until ctx ends. It leaves it in place then: a
// stopped Headwater still protects.
func (r *Registration) Run(ctx context.Context) error {
	defer r.watching.Wait()
	defer r.rules.Subscribe(func(_, _ *rules.Set[Rule]) { r.wake.up() })()
	loop{wake: r.wake, clock: r.clock, log: r.log, step: r.reconcile}.run(ctx)
	return nil
}

func (r *Registration) reconcile(ctx context.Context) (again time.Duration, err error) {
	bundle := r.bundle()
	desired := Configuration(r.rules.Load(), r.identity.Name(), r.endpoint, bundle)
	if desired == nil {
		return 0, r.remove(ctx)
	}
	if bundle == nil || r.identity.Name() == "" || r.applied == nil && !r.ready() {
		return readyInterval, nil
	}
	if err := r.watch(ctx); err != nil {
		return 0, err
	}
	if wait := r.clock.Since(r.repairedAt); wait < repairInterval {
		return repairInterval - wait, nil
	}
	if live, found := r.view.Get("", ConfigurationName); found && live.UID != r.removed && inForce(live, desired) {
		r.applied = desired
		return 0, nil
	}
	return 0, r.apply(ctx, desired)
}

// apply writes desired over what is there, if that differs: the cache may lag
// behind a write of our own.
func (r *Registration) apply(ctx context.Context, desired *admissionregistrationv1.ValidatingWebhookConfiguration) error {
	client := r.configurations()
	live, err := client.Get(ctx, ConfigurationName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = client.Create(ctx, desired, metav1.CreateOptions{FieldManager: mark.FieldManager})
	case err != nil:
	case inForce(live, desired):
		r.applied = desired
		return nil
	default:
		_, err = client.Update(ctx, over(live, desired), metav1.UpdateOptions{FieldManager: mark.FieldManager})
	}
	if err != nil {
		return fmt.Errorf("write webhook configuration %s: %w", ConfigurationName, err)
	}
	r.wrote(desired)
	return nil
}

func (r *Registration) wrote(desired *admissionregistrationv1.ValidatingWebhookConfiguration) {
	count := zap.Int("rules", len(r.rules.Load().All()))
	switch {
	case r.applied == nil:
		r.log.Info("webhook configuration registered", count)
	case inForce(r.applied, desired):
		r.repairedAt = r.clock.Now()
		r.metrics.repairs.Inc()
		r.log.Warn("webhook configuration was changed or deleted by somebody else; restored it", count)
	default:
		r.log.Info("webhook configuration updated", count)
	}
	r.applied = desired
}

// remove deletes the configuration when no rule asks for it. Without the
// permission to look there is nothing to do: it was never written.
func (r *Registration) remove(ctx context.Context) error {
	r.applied = nil
	if r.view != nil {
		if _, found := r.view.Get("", ConfigurationName); !found {
			return nil
		}
	}
	live, err := r.configurations().Get(ctx, ConfigurationName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look up webhook configuration %s: %w", ConfigurationName, err)
	}
	err = r.configurations().Delete(ctx, ConfigurationName, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &live.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete webhook configuration %s: %w", ConfigurationName, err)
	}
	r.removed = live.UID
	r.log.Info("webhook configuration deleted: no rule protects anything")
	return nil
}

// watch starts the cache of the one configuration, once, and waits for it.
func (r *Registration) watch(ctx context.Context) error {
	if r.view != nil {
		return nil
	}
	view, err := configurationView(r.client, r.log, r.wake)
	if err != nil {
		return err
	}
	r.watching.Go(func() { view.Run(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), view.HasSynced) {
		return ctx.Err()
	}
	r.view = view
	return nil
}

// configurationView is a cache of the one configuration. It wakes on every
// change.
func configurationView(client kubernetes.Interface, log *zap.Logger, wake wake) (*kube.View[*admissionregistrationv1.ValidatingWebhookConfiguration], error) {
	informer := admissioninformers.NewFilteredValidatingWebhookConfigurationInformer(client, 0, cache.Indexers{},
		func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, ConfigurationName).String()
		})
	view, err := kube.NewView("webhook configuration", informer, log,
		func(obj any) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
			return nil, fmt.Errorf("object of type %T is not a ValidatingWebhookConfiguration", obj)
		})
	if err != nil {
		return nil, err
	}
	_, err = view.OnChange(func(kube.Change[*admissionregistrationv1.ValidatingWebhookConfiguration]) { wake.up() })
	return view, err
}

// publishedBy lists the different CA bundles of configuration, which is nil
// when there is none.
func publishedBy(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) []string {
	if configuration == nil {
		return nil
	}
	var bundles []string
	for _, webhook := range configuration.Webhooks {
		bundles = append(bundles, string(webhook.ClientConfig.CABundle))
	}
	slices.Sort(bundles)
	return slices.Compact(bundles)
}

func (r *Registration) configurations() admissionclient.ValidatingWebhookConfigurationInterface {
	return r.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
}

// over puts desired in the place of live and keeps what others wrote on it.
func over(live, desired *admissionregistrationv1.ValidatingWebhookConfiguration) *admissionregistrationv1.ValidatingWebhookConfiguration {
	updated := live.DeepCopy()
	updated.Webhooks = desired.Webhooks
	if updated.Labels == nil {
		updated.Labels = map[string]string{}
	}
	for key, value := range desired.Labels {
		updated.Labels[key] = value
	}
	return updated
}
