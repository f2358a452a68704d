package protect

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/configmap"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/live"
	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/internal/serve"
)

// Module keeps sources from being changed by those who should not.
var Module = fx.Module("protect",
	fx.Decorate(func(log *zap.Logger) *zap.Logger { return log.Named("protect") }),
	fx.Provide(New),
)

// DefaultAddress is where the webhook listens.
const DefaultAddress = ":9443"

// listenRetry is how long to wait before trying an address again that was
// taken when the first rule appeared in a running process.
const listenRetry = 5 * time.Second

// Options are set by flags.
type Options struct {
	// Namespace is Headwater's own.
	Namespace string
	// WebhookURL is where the API server reaches the webhook; empty means the
	// Service headwater-webhook.
	WebhookURL string
	// WebhookAddress is where the webhook listens, by default DefaultAddress.
	WebhookAddress string
	// Drain is how long the webhook goes on serving once it is told to stop: as
	// long as a Service may send requests to a pod that is not ready any more.
	Drain time.Duration
	// Settle is how long a new CA is published before a certificate of it is
	// served, by default DefaultSettle.
	Settle time.Duration
	// Configuration is checked at admission while the webhook is registered.
	Configuration OwnConfiguration
}

// Identity is the user name under which Headwater writes. It is empty, and
// nobody passes for Headwater, until Set.
type Identity struct{ name atomic.Pointer[string] }

// Set makes name the identity.
func (i *Identity) Set(name string) { i.name.Store(&name) }

// Name returns the identity.
func (i *Identity) Name() string {
	if name := i.name.Load(); name != nil {
		return *name
	}
	return ""
}

// Params is what the module is built from.
type Params struct {
	fx.In

	Clients  *kube.Clients
	Caches   *kube.Caches
	Events   *kube.Events
	Registry *prometheus.Registry
	Log      *zap.Logger
	Rules    *rules.Live[Rule]
	Options  Options
	Identity *Identity
	Settings *live.Value[Settings]
	Onlooker Onlooker `optional:"true"`
}

// Result is what the module runs.
type Result struct {
	fx.Out

	View *View
	// Registration and Prover are the leader's work.
	Registration kube.Runnable `group:"leader"`
	Prover       kube.Runnable `group:"leader"`
	// Webhook and Certificates run on every replica. Webhook ends gracefully
	// and answers until then: what it reads must outlive it.
	Webhook      kube.Runnable `group:"replica"`
	Certificates kube.Runnable `group:"replica"`
	// Permissions is what the rules in force at the start need.
	Permissions []kube.Permission `group:"permissions,flatten"`
	Check       serve.Check       `group:"checks"`
}

// New builds the module. Nothing runs and nothing listens before the
// Runnables do. It fails when the options make no sense.
func New(p Params) (Result, error) {
	endpoint, err := NewEndpoint(p.Options.WebhookURL, p.Options.Namespace)
	if err != nil {
		return Result{}, err
	}
	needed := func() bool { return hasRules(p.Rules) }
	access, err := NewAccess(p.Clients, p.Caches, needed, p.Log)
	if err != nil {
		return Result{}, err
	}
	clk := clock.RealClock{}
	certificateMetrics := NewCertificateMetrics(p.Registry)
	memory := memory{identity: p.Identity, settings: p.Settings, caches: p.Caches, access: access}
	probing := serviceAccountUser(p.Options.Namespace, ProverAccount)
	record := recorder{
		prober: probing,
		rules:  p.Rules, source: p.Caches.Sources.Get, events: p.Events, metrics: newMetrics(p.Registry), log: p.Log,
		onlooker: p.Onlooker,
	}
	decide := decider(p, memory)
	keeper := NewCertificateKeeper(p.Clients.Typed, certificateOrigin(p, endpoint, clk, certificateMetrics), cmp.Or(p.Options.Settle, DefaultSettle), clk, certificateMetrics, p.Log)
	reviewer := NewReviewer(memory.ready, decide, record.record, clk, p.Log)
	server := NewServer(cmp.Or(p.Options.WebhookAddress, DefaultAddress), p.Options.Drain, reviewer, keeper.Serving, p.Log)
	prober, err := p.Clients.As(probing)
	if err != nil {
		return Result{}, err
	}
	prover := &Prover{
		prober: prober, store: configmap.Store{Client: p.Clients.Typed, Namespace: p.Options.Namespace, Name: ProofsConfigMap}, namespace: p.Options.Namespace, rules: p.Rules,
		protected: protectedBy(p.Caches), source: p.Caches.Sources.Get, clock: clk, events: p.Events, metrics: NewProofMetrics(p.Registry), log: p.Log, wake: loop.NewWake(),
	}
	registration := &Registration{
		client: p.Clients.Typed, ledger: ledger{store: configmap.Store{Client: p.Clients.Typed, Namespace: p.Options.Namespace, Name: RegisteredConfigMap}},
		rules: p.Rules, settings: p.Settings, world: memory.world, memoryReady: memory.ready,
		sourcesRead: func() bool { return sourcesRead(p.Rules, p.Caches.Sources) },
		endpoint:    endpoint, own: p.Options.Configuration, bundle: keeper.Bundle, answering: server.Listening,
		proof: prover.Proof, changed: prover.Changed,
		clock: clk, events: p.Events, metrics: NewRegistrationMetrics(p.Registry), log: p.Log, wake: loop.NewWake(),
	}
	prover.engine, prover.changed = registration.InForce, registration.Changed
	keeper.OnChange(registration.Changed)
	if err := access.OnChange(registration.bound); err != nil {
		return Result{}, err
	}
	if _, err := p.Caches.Sources.OnChange(func(change kube.Change[*object.Full]) {
		if change.Added || change.Deleted || !maps.Equal(change.Old.Labels, change.New.Labels) { // a label may make a source
			registration.Changed()
			prover.Changed()
		}
	}); err != nil {
		return Result{}, err
	}
	webhookNeeded := func() bool { return needed() && p.Settings.Load().Engine != EnginePolicy }
	return Result{
		View:         &View{prover, registration.InForce},
		Registration: kube.Runnable{Name: "protect registration", Run: registration.Run},
		Prover:       kube.Runnable{Name: "protect prover", Run: prover.Run},
		Webhook:      kube.Runnable{Name: "protect webhook", Run: whenNeeded(webhookNeeded, p.Rules, p.Log, server.Run)},
		Certificates: kube.Runnable{Name: "protect certificates", Run: whenNeeded(webhookNeeded, p.Rules, p.Log, keeper.Run)},
		Permissions:  permissions(needed(), p.Settings.Load(), p.Options.Namespace),
		Check:        check(webhookNeeded, server, keeper),
	}, nil
}

// decider judges the requests that the webhook is asked about.
func decider(p Params, memory memory) func(Request) Verdict {
	return func(request Request) Verdict {
		if request.Question.About == AboutConfiguration {
			return p.Options.Configuration.judge(request)
		}
		return Decide(request, p.Rules.Load(), memory.world())
	}
}

// certificateOrigin is the Secret that the settings name, or Headwater itself.
func certificateOrigin(p Params, endpoint Endpoint, clk clock.Clock, m *CertificateMetrics) origin {
	if name := p.Settings.Load().Certificates.SecretName; name != "" {
		return &givenCertificates{
			namespace: p.Options.Namespace, name: name, host: endpoint.ServerName, events: p.Events, clock: clk, metrics: m, log: p.Log,
		}
	}
	return &ownCertificates{client: p.Clients.Typed, namespace: p.Options.Namespace, hosts: endpoint.Hosts, clock: clk, log: p.Log}
}

// whenNeeded runs work once it is, which is looked at whenever the rules are
// swapped. An error ends the process when work was needed at the start; later
// it must not take the rest of Headwater down with it, so it is tried again.
func whenNeeded(needed func() bool, live *rules.Live[Rule], log *zap.Logger, work func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		late := await(ctx, needed, live)
		for ctx.Err() == nil {
			err := work(ctx)
			if err == nil || !late {
				return err
			}
			log.Error("protection cannot start, retrying", zap.Error(err))
			select {
			case <-ctx.Done():
			case <-time.After(listenRetry):
			}
		}
		return nil
	}
}

func check(needed func() bool, server *Server, keeper *CertificateKeeper) serve.Check {
	return serve.Check{Name: "protect", Ready: func() error {
		if !needed() {
			return nil
		}
		if !server.Listening() {
			return errors.New("the webhook does not listen")
		}
		return keeper.Ready()
	}}
}

// memory is the World as the caches know it.
type memory struct {
	identity *Identity
	settings *live.Value[Settings]
	caches   *kube.Caches
	access   *Access
}

// ready reports whether everything was read that tells an exempt requester
// from others. A source whose namespace was not read yet is held to be there.
func (m memory) ready() bool { return m.caches.Namespaces.HasSynced() && m.access.HasSynced() }

func (m memory) world() World {
	return World{
		Headwater:        m.identity.Name(),
		SystemIdentities: m.settings.Load().SystemIdentities,
		Terminating: func(name string) bool {
			namespace, found := m.caches.Namespaces.Get("", name)
			return found && namespace.Terminating
		},
		Holds:   m.holds,
		Bound:   m.access.Holds,
		Holders: m.access.Holders,
	}
}

// sourcesRead reports whether the source namespaces of all rules were read.
func sourcesRead(live *rules.Live[Rule], sources *kube.Sources) bool {
	return !slices.ContainsFunc(live.Load().All(), func(rule Rule) bool {
		_, synced := sources.Of(rule.Base)
		return !synced
	})
}

func (m memory) holds(rule Rule) bool {
	sources, synced := m.caches.Sources.Of(rule.Base)
	return len(sources) > 0 || !synced
}
