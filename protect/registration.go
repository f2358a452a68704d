package protect

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

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/live"
	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/rules"
)

const readyInterval = 200 * time.Millisecond

// Registration keeps the webhook configuration and the policies as the rules
// ask for. One replica runs it, the leader.
type Registration struct {
	client   kubernetes.Interface
	rules    *rules.Live[Rule]
	settings *live.Value[Settings]
	// world is what the policies are written from, memoryReady whether it may be.
	world       func() World
	memoryReady func() bool
	// sourcesRead is false while world may say of a rule that there is a source,
	// because nobody knows yet.
	sourcesRead func() bool
	endpoint    Endpoint
	// own is the configuration that the webhook checks, too; not without a Check.
	own OwnConfiguration
	// bundle returns the CAs to trust, nil while there is none; answering
	// reports whether reviews are answered.
	bundle    func() []byte
	answering func() bool
	// proof returns what was last seen to refuse.
	proof  func() Proof
	clock  clock.Clock
	events interface{ Record(kube.Event) }
	// changed is called after each write.
	changed func()
	metrics *RegistrationMetrics
	log     *zap.Logger
	wake    loop.Wake

	// inForce is what engine last returned.
	inForce atomic.Pointer[Engine]

	// Owned by the loop.
	ledger   ledger
	running  sync.WaitGroup
	webhooks *upkeep[*admissionregistrationv1.ValidatingWebhookConfiguration]
	policies *upkeep[*admissionregistrationv1.ValidatingAdmissionPolicy]
	bindings *upkeep[*admissionregistrationv1.ValidatingAdmissionPolicyBinding]
	// owner owns all that is registered; nil until it was looked for.
	owner *[]metav1.OwnerReference
	// served is whether the API server has policies; nil until it was asked.
	served *bool
	// relied is true once the webhook was seen to refuse, by this or an
	// earlier leader: it is never taken back, whatever state the webhook is in.
	relied bool
	// alone is since when the webhook has been registered to protect alone;
	// zero while it is not.
	alone time.Time
}

// Changed makes the registration look again.
func (r *Registration) Changed() { r.wake.Up() }

// bound makes the registration look again if a binding of clusterRole matters.
func (r *Registration) bound(clusterRole string) {
	if exempts(r.rules.Load(), clusterRole) {
		r.wake.Up()
	}
}

// Run keeps the configuration until ctx ends. It leaves all in place then: a
// stopped Headwater still protects.
func (r *Registration) Run(ctx context.Context) error {
	if err := r.prepare(); err != nil {
		return err
	}
	defer r.running.Wait()
	defer r.rules.Subscribe(func(_, _ *rules.Set[Rule]) { r.wake.Up() })()
	loop.Loop{Wake: r.wake, Clock: r.clock, Log: r.log, Step: r.reconcile}.Run(ctx)
	return nil
}

func (r *Registration) reconcile(ctx context.Context) (again time.Duration, err error) {
	if hasRules(r.rules) && (r.world().Headwater == "" || !r.memoryReady()) {
		return readyInterval, nil
	}
	if err := r.ledger.recall(ctx); err != nil {
		return 0, err
	}
	engine, err := r.engine(ctx)
	if err != nil {
		return 0, err
	}
	r.inForce.Store(&engine)
	if !r.sourcesRead() {
		again = readyInterval // that there is none, no event tells
	}
	if engine != EngineWebhook || !hasRules(r.rules) {
		r.alone = time.Time{}
	}
	waiting, policyErr := r.keepPolicies(ctx, engine)
	if policyErr != nil {
		r.changed() // what refuses may be another engine by now
	}
	later, webhookErr := r.keepWebhooks(ctx, engine, policyErr == nil)
	return loop.Sooner(again, loop.Sooner(waiting, later)), errors.Join(policyErr, webhookErr, r.ledger.record(ctx))
}

// InForce is the engine that protects; the one that is asked for, until it is
// known whether there are policies.
func (r *Registration) InForce() Engine {
	if engine := r.inForce.Load(); engine != nil {
		return *engine
	}
	return r.settings.Load().Engine
}

// engine is the one that is asked for, or the webhook where both are and the
// API server has no policies.
func (r *Registration) engine(ctx context.Context) (Engine, error) {
	engine := r.settings.Load().Engine
	if !hasRules(r.rules) {
		return engine, nil
	}
	if err := r.discover(ctx); err != nil || *r.served {
		return engine, err
	}
	if engine == EnginePolicy {
		return "", errors.New("protect.engine is Policy, but this API server does not serve ValidatingAdmissionPolicy " +
			"(Kubernetes 1.30 and later do): nothing is protected; use Webhook or Both")
	}
	return EngineWebhook, nil
}

func (r *Registration) discover(ctx context.Context) error {
	if r.served != nil {
		return nil
	}
	_, err := r.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("ask for policies: %w", err)
	}
	served := err == nil
	r.served = &served
	if !served {
		r.log.Warn("this API server does not serve ValidatingAdmissionPolicy, as Kubernetes 1.30 and later do: the webhook alone protects, and nothing guards its configuration")
	}
	return nil
}

// findOwner looks for the ClusterRole that is Headwater's own. What it owns goes
// with an uninstallation, by the garbage collector, whether or not a pod of
// Headwater runs; where there is none, what is registered stays.
func (r *Registration) findOwner(ctx context.Context) error {
	role, err := r.client.RbacV1().ClusterRoles().Get(ctx, OwnerName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		r.owner = &[]metav1.OwnerReference{}
	case err != nil:
		return fmt.Errorf("look for ClusterRole %s: %w", OwnerName, err)
	default:
		r.owner = &[]metav1.OwnerReference{{
			APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: role.Name, UID: role.UID,
		}}
	}
	return nil
}

// owned gives object its owner. Before a creation it is looked for anew: that it
// was made anew may be why the object is gone.
func (r *Registration) owned(ctx context.Context, object metav1.Object, creation bool) error {
	if creation || r.owner == nil {
		if err := r.findOwner(ctx); err != nil {
			return err
		}
	}
	object.SetOwnerReferences(*r.owner)
	return nil
}

// keepPolicies leaves the policies in force until the webhook that is to take
// over must be known to every API server.
func (r *Registration) keepPolicies(ctx context.Context, engine Engine) (again time.Duration, err error) {
	takingOver := engine == EngineWebhook && hasRules(r.rules)
	if takingOver && !r.alone.IsZero() { // else keepWebhooks says when to look again
		again = max(0, settling-r.clock.Since(r.alone))
		takingOver = again > 0
	}
	var definitions []*admissionregistrationv1.ValidatingAdmissionPolicy
	var bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	for _, policy := range desiredPolicies(r.rules.Load(), r.world(), engine, r.served != nil && *r.served) {
		definitions, bindings = append(definitions, policy.Definition), append(bindings, policy.Binding)
	}
	waiting, err := r.policies.keep(ctx, &r.running, definitions, takingOver)
	later, bindingErr := r.bindings.keep(ctx, &r.running, bindings, takingOver)
	return loop.Sooner(again, loop.Sooner(waiting, later)), errors.Join(err, bindingErr)
}

// desiredPolicies leaves rules that refuse nothing to the webhook, if there is
// one: it tells more. One policy guards its configuration, whatever the engine,
// since no webhook can.
func desiredPolicies(set *rules.Set[Rule], world World, engine Engine, served bool) []Policy {
	switch {
	case len(set.All()) == 0 || !served:
		return nil
	case engine == EngineWebhook:
		return []Policy{SelfPolicy(world)}
	case engine == EnginePolicy:
		return Policies(set, world, Enforce, Warn, Audit)
	default:
		return append(Policies(set, world, Enforce), SelfPolicy(world))
	}
}

// keepWebhooks leaves the webhook in force until the policies that are to take
// over were seen to refuse, or nothing was. kept is whether the policies are as
// they should be.
func (r *Registration) keepWebhooks(ctx context.Context, engine Engine, kept bool) (again time.Duration, err error) {
	proof := r.proof()
	switch {
	case !hasRules(r.rules):
		return r.webhooks.keep(ctx, &r.running, nil, false)
	case engine != EnginePolicy:
		return r.registerWebhooks(ctx, engine, kept)
	case !proof.Known || proof.By == EngineWebhook:
		return 0, nil // the next proof wakes the loop
	default:
		return r.webhooks.keep(ctx, &r.running, nil, false)
	}
}

func (r *Registration) registerWebhooks(ctx context.Context, engine Engine, kept bool) (again time.Duration, err error) {
	bundle := r.bundle()
	if err := r.webhooks.watch(ctx, &r.running); err != nil {
		return 0, err
	}
	r.recallReliance()
	proof := r.proof()
	if bundle == nil || !proof.Known && engine == EngineBoth || len(r.webhooks.applied) == 0 && !r.answering() {
		return readyInterval, nil
	}
	stance := r.stance(engine, proof, kept)
	desired := Configuration(r.rules.Load(), r.world().Headwater, stance, r.endpoint, bundle)
	if r.own.Check != nil {
		desired.Webhooks = append(desired.Webhooks, configurationWebhook(r.own, r.endpoint, bundle))
	}
	again, err = r.webhooks.keep(ctx, &r.running, []*admissionregistrationv1.ValidatingWebhookConfiguration{desired}, false)
	if engine == EngineWebhook && err == nil && r.alone.IsZero() {
		r.alone = r.clock.Now()
		again = loop.Sooner(again, settling)
	}
	return again, err
}

// stance has the webhook stand in for policies that cannot be kept: what refused
// the last attempt may be all that is left of them.
func (r *Registration) stance(engine Engine, proof Proof, kept bool) Stance {
	r.relied = r.relied || proof.By == EngineWebhook
	switch {
	case engine == EngineBoth && proof.By == EnginePolicy && kept:
		return StanceBeside
	case r.relied:
		return StanceAlone
	default:
		return StanceUnproven
	}
}

// recallReliance finds out what an earlier leader knew, before anything is
// written over it.
func (r *Registration) recallReliance() {
	if r.relied || len(r.webhooks.applied) > 0 {
		return
	}
	live, found := r.webhooks.view.Get("", ConfigurationName)
	if !found {
		return
	}
	for _, webhook := range live.Webhooks {
		r.relied = r.relied || webhook.FailurePolicy != nil && *webhook.FailurePolicy == admissionregistrationv1.Fail
	}
}
