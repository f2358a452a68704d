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
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

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

// Registration keeps the webhook configuration and the policies as the rules
// ask for. One replica runs it, the leader.
type Registration struct {
	Client   kubernetes.Interface
	Rules    *rules.Live[spec.Rule]
	Settings *live.Value[spec.Settings]
	// world is what the policies are written from, MemoryReady whether it may be.
	World      func() decide.World
	WorldReady func() bool
	// SourcesRead is false while world may say of a rule that there is a source,
	// because nobody knows yet.
	SourcesRead func() bool
	Endpoint    spec.Endpoint
	// own is the configuration that the webhook checks, too; not without a Check.
	Own decide.OwnConfiguration
	// bundle returns the CAs to trust, nil while there is none; answering
	// reports whether reviews are answered.
	Bundle    func() []byte
	Answering func() bool
	// proof returns what was last seen to refuse.
	Proof  func() prove.Proof
	Clock  clock.Clock
	Events interface{ Record(events.Event) }
	// changed is called after each write.
	OnChange func()
	Metrics  *Metrics
	Log      *zap.Logger
	Wake     loop.Wake

	// inForce is what engine last returned.
	inForce atomic.Pointer[spec.Engine]

	// Owned by the loop.
	Versions Versions
	running  sync.WaitGroup
	webhooks *objectReconciler[*admissionregistrationv1.ValidatingWebhookConfiguration]
	policies *objectReconciler[*admissionregistrationv1.ValidatingAdmissionPolicy]
	bindings *objectReconciler[*admissionregistrationv1.ValidatingAdmissionPolicyBinding]
	// owner owns all that is registered; nil until it was looked for.
	owner *[]metav1.OwnerReference
	// served is whether the API server has policies; nil until it was asked.
	served *bool
	// relied is true once the webhook was seen to refuse, by this or an
	// earlier leader: it is never taken back, whatever state the webhook is in.
	webhookVerified bool
	// alone is since when the webhook has been registered to protect alone;
	// zero while it is not.
	soleEngineSince time.Time
}

// Changed makes the registration look again.
func (r *Registration) Changed() { r.Wake.Up() }

// Bound makes the registration look again if a binding of clusterRole matters.
func (r *Registration) Bound(clusterRole string) {
	if spec.Exempts(r.Rules.Load(), clusterRole) {
		r.Wake.Up()
	}
}

// Run keeps the configuration until ctx ends. It leaves all in place then: a
// stopped Headwater still protects.
func (r *Registration) Run(ctx context.Context) error {
	if err := r.newReconcilers(); err != nil {
		return err
	}
	defer r.running.Wait()
	defer r.Rules.Subscribe(func(_, _ *rules.Set[spec.Rule]) { r.Wake.Up() })()
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
		requeueAfter = readyInterval // that there is none, no event tells
	}
	if engine != spec.EngineWebhook || !spec.HasRules(r.Rules) {
		r.soleEngineSince = time.Time{}
	}
	waiting, policyErr := r.reconcilePolicies(ctx, engine)
	if policyErr != nil {
		r.OnChange() // what refuses may be another engine by now
	}
	later, webhookErr := r.reconcileWebhooks(ctx, engine, policyErr == nil)
	return loop.Sooner(requeueAfter, loop.Sooner(waiting, later)), errors.Join(policyErr, webhookErr, r.Versions.save(ctx))
}

// InForce is the engine that protects; the one that is asked for, until it is
// known whether there are policies.
func (r *Registration) InForce() spec.Engine {
	if engine := r.inForce.Load(); engine != nil {
		return *engine
	}
	return r.Settings.Load().Engine
}

// engine is the one that is asked for, or the webhook where both are and the
// API server has no policies.
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
		return fmt.Errorf("ask for policies: %w", err)
	}
	served := err == nil
	r.served = &served
	if !served {
		r.Log.Warn("this API server does not serve ValidatingAdmissionPolicy, as Kubernetes 1.30 and later do: the webhook alone protects, and nothing guards its configuration")
	}
	return nil
}

// findOwner looks for the ClusterRole that is Headwater's own. What it owns goes
// with an uninstallation, by the garbage collector, whether or not a pod of
// Headwater runs; where there is none, what is registered stays.
func (r *Registration) findOwner(ctx context.Context) error {
	role, err := r.Client.RbacV1().ClusterRoles().Get(ctx, spec.OwnerName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		r.owner = &[]metav1.OwnerReference{}
	case err != nil:
		return fmt.Errorf("look for ClusterRole %s: %w", spec.OwnerName, err)
	default:
		r.owner = &[]metav1.OwnerReference{{
			APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: role.Name, UID: role.UID,
		}}
	}
	return nil
}

// setOwner gives object its owner. Before a creation it is looked for anew: that it
// was made anew may be why the object is gone.
func (r *Registration) setOwner(ctx context.Context, object metav1.Object, creation bool) error {
	if creation || r.owner == nil {
		if err := r.findOwner(ctx); err != nil {
			return err
		}
	}
	object.SetOwnerReferences(*r.owner)
	return nil
}

// reconcilePolicies leaves the policies in force until the webhook that is to take
// over must be known to every API server.
func (r *Registration) reconcilePolicies(ctx context.Context, engine spec.Engine) (requeueAfter time.Duration, err error) {
	takingOver := engine == spec.EngineWebhook && spec.HasRules(r.Rules)
	if takingOver && !r.soleEngineSince.IsZero() { // else keepWebhooks says when to look again
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

// desiredPolicies leaves rules that refuse nothing to the webhook, if there is
// one: it tells more. One policy guards its configuration, whatever the engine,
// since no webhook can.
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

// reconcileWebhooks leaves the webhook in force until the policies that are to take
// over were seen to refuse, or nothing was. kept is whether the policies are as
// they should be.
func (r *Registration) reconcileWebhooks(ctx context.Context, engine spec.Engine, policiesCurrent bool) (requeueAfter time.Duration, err error) {
	proof := r.Proof()
	switch {
	case !spec.HasRules(r.Rules):
		return r.webhooks.reconcile(ctx, &r.running, nil, false)
	case engine != spec.EnginePolicy:
		return r.registerWebhooks(ctx, engine, policiesCurrent)
	case !proof.Known || proof.By == spec.EngineWebhook:
		return 0, nil // the next proof wakes the loop
	default:
		return r.webhooks.reconcile(ctx, &r.running, nil, false)
	}
}

func (r *Registration) registerWebhooks(ctx context.Context, engine spec.Engine, policiesCurrent bool) (requeueAfter time.Duration, err error) {
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
	desired := manifests.Configuration(r.Rules.Load(), r.World().Headwater, mode, r.Endpoint, bundle)
	if r.Own.Check != nil {
		desired.Webhooks = append(desired.Webhooks, manifests.ConfigurationWebhook(r.Own, r.Endpoint, bundle))
	}
	requeueAfter, err = r.webhooks.reconcile(ctx, &r.running, []*admissionregistrationv1.ValidatingWebhookConfiguration{desired}, false)
	if engine == spec.EngineWebhook && err == nil && r.soleEngineSince.IsZero() {
		r.soleEngineSince = r.Clock.Now()
		requeueAfter = loop.Sooner(requeueAfter, prove.Settling)
	}
	return requeueAfter, err
}

// failureMode has the webhook stand in for policies that cannot be kept: what refused
// the last attempt may be all that is left of them.
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

// recallWebhookVerified finds out what an earlier leader knew, before anything is
// written over it.
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
