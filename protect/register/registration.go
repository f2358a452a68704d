package register

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/live"
	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/manifests"
	"github.com/headwater-k8s/headwater/protect/prove"
	"github.com/headwater-k8s/headwater/protect/spec"
)

const readyInterval = 200 * time.Millisecond

// Registration keeps the webhook configuration and the policies in the state
// that the rules require. One replica runs it, the leader.
type Registration struct {
	Client   kubernetes.Interface
	Rules    *rules.Live[spec.Rule]
	Settings *live.Value[spec.Settings]
	// World is the state that policies are written from. WorldReady reports
	// whether it is complete.
	World      func() decide.World
	WorldReady func() bool
	// SourcesRead reports whether the sources of all rules are cached. Until
	// then, World reports uncached sources as existing.
	SourcesRead func() bool
	// Endpoint returns how the API server reaches the webhook, if it trusts these CAs.
	Endpoint func(caBundle []byte) spec.Endpoint
	// Own is Headwater's own configuration. The webhook validates it if
	// Own.Check is set.
	Own decide.OwnConfiguration
	// Bundle returns the CAs to trust, or nil while there are none. Answering
	// reports whether the webhook answers reviews.
	Bundle    func() []byte
	Answering func() bool
	// Proof returns the last result of the prover.
	Proof  func() prove.Proof
	Clock  clock.Clock
	Events interface{ Record(events.Event) }
	// OnChange is called after each write.
	OnChange func()
	Metrics  *metrics
	Log      *zap.Logger
	Wake     loop.Wake

	// inForce is the last result of engine.
	inForce atomic.Pointer[spec.Engine]

	// Used only by the loop.
	Versions Versions
	running  sync.WaitGroup
	webhooks *objectReconciler[*admissionregistrationv1.ValidatingWebhookConfiguration]
	policies *objectReconciler[*admissionregistrationv1.ValidatingAdmissionPolicy]
	bindings *objectReconciler[*admissionregistrationv1.ValidatingAdmissionPolicyBinding]
	// owner is the owner reference of all registered objects. It is nil until
	// looked up.
	owner *[]metav1.OwnerReference
	// served is whether the API server serves policies. It is nil until looked
	// up.
	served *bool
	// webhookVerified is true once this or an earlier leader has seen the
	// webhook deny a request. It never becomes false again.
	webhookVerified bool
	// soleEngineSince is when the webhook was registered as the only engine. It
	// is zero while it is not.
	soleEngineSince time.Time
}

// Changed triggers a reconcile.
func (r *Registration) Changed() { r.Wake.Notify() }

// Bound triggers a reconcile if a rule exempts clusterRole. Call it when a
// binding of clusterRole changes.
func (r *Registration) Bound(clusterRole string) {
	if spec.Exempts(r.Rules.Load(), clusterRole) {
		r.Wake.Notify()
	}
}

// Run reconciles until ctx ends. It does not delete the objects then, so that
// sources stay protected.
func (r *Registration) Run(ctx context.Context) error {
	if err := r.newReconcilers(); err != nil {
		return err
	}
	defer r.running.Wait()
	defer r.Rules.Subscribe(func(_, _ *rules.Set[spec.Rule]) { r.Wake.Notify() })()
	loop.Loop{Wake: r.Wake, Clock: r.Clock, Log: r.Log, Step: r.reconcile}.Run(ctx)
	return nil
}

func (r *Registration) reconcile(ctx context.Context) (requeueAfter time.Duration, err error) {
	if spec.HasRules(r.Rules) && (r.World().Headwater == "" || !r.WorldReady()) {
		return readyInterval, nil
	}
	if err := r.Versions.load(ctx); err != nil {
		return 0, err
	}
	engine, err := r.engine(ctx)
	if err != nil {
		return 0, err
	}
	r.inForce.Store(&engine)
	if !r.SourcesRead() {
		requeueAfter = readyInterval // a missing source causes no event
	}
	if engine != spec.EngineWebhook || !spec.HasRules(r.Rules) {
		r.soleEngineSince = time.Time{}
	}
	waiting, policyErr := r.reconcilePolicies(ctx, engine)
	if policyErr != nil {
		r.OnChange() // another engine may enforce now
	}
	later, webhookErr := r.reconcileWebhooks(ctx, engine, policyErr == nil)
	return loop.Sooner(requeueAfter, loop.Sooner(waiting, later)), errors.Join(policyErr, webhookErr, r.Versions.save(ctx))
}

// InForce returns the engine that enforces the rules. It is the configured one
// until the API server was asked whether it serves policies.
func (r *Registration) InForce() spec.Engine {
	if engine := r.inForce.Load(); engine != nil {
		return *engine
	}
	return r.Settings.Load().Engine
}

// engine returns the configured engine, or Webhook if that is Both and the API
// server does not serve policies. It fails for Policy if they are not served.
func (r *Registration) engine(ctx context.Context) (spec.Engine, error) {
	engine := r.Settings.Load().Engine
	if !spec.HasRules(r.Rules) {
		return engine, nil
	}
	if err := r.discoverPolicies(ctx); err != nil || *r.served {
		return engine, err
	}
	if engine == spec.EnginePolicy {
		return "", errors.New("protect.engine is Policy, but this API server does not serve ValidatingAdmissionPolicy " +
			"(Kubernetes 1.30 and later do): nothing is protected; use Webhook or Both")
	}
	return spec.EngineWebhook, nil
}

func (r *Registration) discoverPolicies(ctx context.Context) error {
	if r.served != nil {
		return nil
	}
	_, err := r.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("list ValidatingAdmissionPolicies: %w", err)
	}
	served := err == nil
	r.served = &served
	if !served {
		r.Log.Warn("this API server does not serve ValidatingAdmissionPolicy, as Kubernetes 1.30 and later do: the webhook alone protects, and nothing guards its configuration")
	}
	return nil
}

// setOwner makes Headwater's ClusterRole the owner of object. Before a creation it looks the owner
// up again: if the owner was recreated, the garbage collector may have deleted the object.
func (r *Registration) setOwner(ctx context.Context, object metav1.Object, creation bool) error {
	if creation || r.owner == nil {
		owner, err := kube.OwnerReferences(ctx, r.Client)
		if err != nil {
			return err
		}
		r.owner = &owner
	}
	object.SetOwnerReferences(*r.owner)
	return nil
}

// reconcilePolicies writes the policies. If the webhook takes over, it keeps
// the old ones until the webhook configuration has reached every API server.
func (r *Registration) reconcilePolicies(ctx context.Context, engine spec.Engine) (requeueAfter time.Duration, err error) {
	takingOver := engine == spec.EngineWebhook && spec.HasRules(r.Rules)
	if takingOver && !r.soleEngineSince.IsZero() { // otherwise reconcileWebhooks returns when to check again
		requeueAfter = max(0, prove.Settling-r.Clock.Since(r.soleEngineSince))
		takingOver = requeueAfter > 0
	}
	var definitions []*admissionregistrationv1.ValidatingAdmissionPolicy
	var bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	for _, policy := range desiredPolicies(r.Rules.Load(), r.World(), engine, r.served != nil && *r.served) {
		definitions, bindings = append(definitions, policy.Definition), append(bindings, policy.Binding)
	}
	waiting, err := r.policies.reconcile(ctx, &r.running, definitions, takingOver)
	later, bindingErr := r.bindings.reconcile(ctx, &r.running, bindings, takingOver)
	return loop.Sooner(requeueAfter, loop.Sooner(waiting, later)), errors.Join(err, bindingErr)
}

// desiredPolicies returns the policies for engine. With Both, policies enforce,
// and the webhook handles Warn and Audit, because it reports more. SelfPolicy
// is always included, because no webhook can protect the webhook configuration.
func desiredPolicies(set *rules.Set[spec.Rule], world decide.World, engine spec.Engine, served bool) []manifests.Policy {
	switch {
	case len(set.All()) == 0 || !served:
		return nil
	case engine == spec.EngineWebhook:
		return []manifests.Policy{manifests.SelfPolicy(world)}
	case engine == spec.EnginePolicy:
		return manifests.Policies(set, world, spec.Enforce, spec.Warn, spec.Audit)
	default:
		return append(manifests.Policies(set, world, spec.Enforce), manifests.SelfPolicy(world))
	}
}

// reconcileWebhooks writes the webhook configuration. If policies take over, it
// keeps the webhook until the prover has seen a policy deny, or nothing deny.
// policiesCurrent is false if writing the policies failed.
func (r *Registration) reconcileWebhooks(ctx context.Context, engine spec.Engine, policiesCurrent bool) (requeueAfter time.Duration, err error) {
	proof, set := r.Proof(), r.Rules.Load()
	switch {
	case len(set.All()) == 0:
		return r.webhooks.reconcile(ctx, &r.running, nil, false)
	case engine != spec.EnginePolicy:
		return r.registerWebhooks(ctx, set, engine, policiesCurrent)
	case !proof.Known || proof.By == spec.EngineWebhook:
		return 0, nil // the next proof wakes the loop
	default:
		return r.webhooks.reconcile(ctx, &r.running, nil, false)
	}
}

// registerWebhooks writes the webhook configuration for set, which has rules.
func (r *Registration) registerWebhooks(ctx context.Context, set *rules.Set[spec.Rule], engine spec.Engine, policiesCurrent bool) (requeueAfter time.Duration, err error) {
	bundle := r.Bundle()
	if err := r.webhooks.watch(ctx, &r.running); err != nil {
		return 0, err
	}
	r.recallWebhookVerified()
	proof := r.Proof()
	if bundle == nil || !proof.Known && engine == spec.EngineBoth || len(r.webhooks.applied) == 0 && !r.Answering() {
		return readyInterval, nil
	}
	mode := r.failureMode(engine, proof, policiesCurrent)
	endpoint := r.Endpoint(bundle)
	desired := manifests.Configuration(set, r.World().Headwater, mode, endpoint, bundle)
	if r.Own.Check != nil {
		desired.Webhooks = append(desired.Webhooks, manifests.ConfigurationWebhook(r.Own, endpoint, bundle))
	}
	requeueAfter, err = r.webhooks.reconcile(ctx, &r.running, []*admissionregistrationv1.ValidatingWebhookConfiguration{desired}, false)
	if engine == spec.EngineWebhook && err == nil && r.soleEngineSince.IsZero() {
		r.soleEngineSince = r.Clock.Now()
		requeueAfter = loop.Sooner(requeueAfter, prove.Settling)
	}
	return requeueAfter, err
}

// failureMode returns the failure mode for the webhook. It does not rely on
// policies that could not be written, even if one denied the last attempt: the
// others may be missing.
func (r *Registration) failureMode(engine spec.Engine, proof prove.Proof, policiesCurrent bool) manifests.FailureMode {
	r.webhookVerified = r.webhookVerified || proof.By == spec.EngineWebhook
	switch {
	case engine == spec.EngineBoth && proof.By == spec.EnginePolicy && policiesCurrent:
		return manifests.FailOpen
	case r.webhookVerified:
		return manifests.FailClosed
	default:
		return manifests.Probe
	}
}

// recallWebhookVerified sets webhookVerified from the live configuration,
// before it is overwritten: an earlier leader set the failure policy Fail only
// after verification.
func (r *Registration) recallWebhookVerified() {
	if r.webhookVerified || len(r.webhooks.applied) > 0 {
		return
	}
	live, found := r.webhooks.view.Get("", spec.ConfigurationName)
	if !found {
		return
	}
	for _, webhook := range live.Webhooks {
		r.webhookVerified = r.webhookVerified || webhook.FailurePolicy != nil && *webhook.FailurePolicy == admissionregistrationv1.Fail
	}
}
