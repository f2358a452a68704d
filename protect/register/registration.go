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

const (
	readyInterval = 200 * time.Millisecond
	// uninstalledRetry is how often to look whether Headwater was installed again.
	uninstalledRetry = 10 * time.Second
)

// Registration keeps the webhook configuration and the policies in the state
// that the rules require. One replica runs it, the leader.
type Registration struct {
	Client kubernetes.Interface
	// Owner owns what is registered.
	Owner *kube.Owner
	// Namespace is Headwater's own.
	Namespace string
	Rules     *rules.Live[spec.Rule]
	Settings  *live.Value[spec.Settings]
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

	// inForce is the engine that enforced the rules at the last reconcile, and
	// registered whether the webhook was registered.
	inForce    atomic.Pointer[spec.Engine]
	registered atomic.Bool

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
	// closedSince is when the webhook was registered as FailClosed. It is zero
	// while it is not.
	closedSince time.Time
	// policiesCurrent is false if writing the policies failed. policiesSince is since
	// when, with engine Policy or Both, all are written and one was seen to deny. It is zero
	// while that is not so.
	policiesCurrent bool
	policiesSince   time.Time
	// webhookGone is true once the webhook configuration is known not to exist.
	webhookGone bool
	// helpUntil is until when policies help the webhook. See helpFor.
	helpUntil time.Time
	// uninstalled is true while the last reconcile found that the owner is gone.
	uninstalled bool
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
	loop.Loop{Wake: r.Wake, Clock: r.Clock, Log: r.Log, Step: r.step}.Run(ctx)
	return nil
}

// step reconciles while Headwater is installed.
func (r *Registration) step(ctx context.Context) (requeueAfter time.Duration, err error) {
	requeueAfter, err = r.reconcile(ctx)
	uninstalled := errors.Is(err, kube.ErrUninstalled)
	if uninstalled && !r.uninstalled {
		r.reportUninstalled()
	}
	if r.uninstalled = uninstalled; uninstalled {
		return uninstalledRetry, nil
	}
	return requeueAfter, err
}

func (r *Registration) reconcile(ctx context.Context) (requeueAfter time.Duration, err error) {
	if spec.HasRules(r.Rules) && (r.World().Headwater == "" || !r.WorldReady()) {
		return readyInterval, nil
	}
	if err := r.Versions.load(ctx); err != nil {
		return 0, err
	}
	if r.Versions.hadOwner() {
		r.Owner.Was()
	}
	engine, err := r.engine(ctx)
	if err != nil {
		return 0, err
	}
	inForce, waiting, err := r.untilHandOver(ctx, engine)
	if err != nil {
		return 0, err
	}
	r.inForce.Store(&inForce)
	if !r.SourcesRead() {
		waiting = loop.Sooner(waiting, readyInterval) // a missing source causes no event
	}
	later, policyErr := r.reconcilePolicies(ctx, inForce)
	if policyErr != nil {
		r.OnChange() // another engine may enforce now
	}
	r.policiesCurrent = policyErr == nil
	r.policiesSince = r.follow(r.policiesSince, engine != spec.EngineWebhook && r.policiesCurrent && r.Proof().By == spec.EnginePolicy)
	latest, webhookErr := r.reconcileWebhooks(ctx, engine, inForce)
	return loop.Sooner(waiting, loop.Sooner(later, latest)), errors.Join(policyErr, webhookErr, r.Versions.save(ctx))
}

// InForce returns the engine that enforces the rules. It is the configured one
// until the API server was asked whether it serves policies, and Both while one
// engine has not taken over from the other.
func (r *Registration) InForce() spec.Engine {
	if engine := r.inForce.Load(); engine != nil {
		return *engine
	}
	return r.Settings.Load().Engine
}

// Registered reports whether the webhook is registered.
func (r *Registration) Registered() bool { return r.registered.Load() }

func (r *Registration) setRegistered(registered bool) {
	if r.registered.Swap(registered) != registered {
		r.OnChange()
	}
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

func (r *Registration) servesPolicies() bool { return r.served != nil && *r.served }

// discoverPolicies sets served. It asks the API server again if that does not serve
// policies, or allowed what the rules forbid: its version or its configuration may have
// changed.
func (r *Registration) discoverPolicies(ctx context.Context) error {
	if r.servesPolicies() && !r.Proof().Allowed {
		return nil
	}
	_, err := r.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil && !apierrors.IsNotFound(err) {
		if r.served != nil {
			r.Log.Warn("it is not known whether this API server still serves ValidatingAdmissionPolicy", zap.Error(err))
			return nil
		}
		return fmt.Errorf("list ValidatingAdmissionPolicies: %w", err)
	}
	before, served := r.servesPolicies() || r.served == nil, err == nil
	r.served = &served
	if !served && before {
		r.Log.Warn("this API server does not serve ValidatingAdmissionPolicy, as Kubernetes 1.30 and later do: the webhook alone protects, and nothing guards its configuration")
	}
	return nil
}

// setOwner makes Headwater's ClusterRole the owner of object. Before a write it looks the owner
// up again: if that is gone or was recreated, the garbage collector may have deleted the object.
func (r *Registration) setOwner(ctx context.Context, object metav1.Object, write bool) error {
	if write || r.owner == nil {
		owner, err := r.Owner.References(ctx)
		if err != nil {
			return err
		}
		r.owner = &owner
	}
	object.SetOwnerReferences(*r.owner)
	return nil
}

// reconcilePolicies writes the policies. It leaves them alone if the API server that was
// asked does not serve them: another one may.
func (r *Registration) reconcilePolicies(ctx context.Context, inForce spec.Engine) (requeueAfter time.Duration, err error) {
	if spec.HasRules(r.Rules) && !r.servesPolicies() {
		return 0, nil
	}
	var definitions []*admissionregistrationv1.ValidatingAdmissionPolicy
	var bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	kept, err := r.keptForWebhook(ctx, inForce)
	if err != nil {
		return 0, err
	}
	for _, policy := range append(desiredPolicies(r.Rules.Load(), r.World(), inForce), kept...) {
		definitions, bindings = append(definitions, policy.Definition), append(bindings, policy.Binding)
	}
	waiting, err := r.policies.reconcile(ctx, &r.running, definitions)
	later, bindingErr := r.bindings.reconcile(ctx, &r.running, bindings)
	return loop.Sooner(waiting, later), errors.Join(err, bindingErr)
}

// keptForWebhook returns SelfPolicy if it exists, where the webhook that policies have taken
// over from may be there still.
func (r *Registration) keptForWebhook(ctx context.Context, inForce spec.Engine) ([]manifests.Policy, error) {
	if inForce != spec.EnginePolicy || !spec.HasRules(r.Rules) || r.webhookGone {
		return nil, nil
	}
	if err := r.policies.watch(ctx, &r.running); err != nil {
		return nil, err
	}
	policy := manifests.SelfPolicy(r.World())
	if _, exists := r.policies.view.Get("", policy.Definition.Name); !exists {
		return nil, nil
	}
	return []manifests.Policy{policy}, nil
}

// desiredPolicies returns the policies for engine. With Both, policies enforce,
// and the webhook handles Warn and Audit, because it reports more. SelfPolicy
// is included with a webhook, because no webhook can protect its configuration.
func desiredPolicies(set *rules.Set[spec.Rule], world decide.World, engine spec.Engine) []manifests.Policy {
	switch {
	case len(set.All()) == 0:
		return nil
	case engine == spec.EngineWebhook:
		return []manifests.Policy{manifests.SelfPolicy(world)}
	case engine == spec.EnginePolicy:
		return manifests.Policies(set, world, spec.Enforce, spec.Warn, spec.Audit)
	default:
		return append(manifests.Policies(set, world, spec.Enforce), manifests.SelfPolicy(world))
	}
}
