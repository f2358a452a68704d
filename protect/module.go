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
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/kube/leader"
	"github.com/headwater-k8s/headwater/internal/live"
	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/internal/serve"
	"github.com/headwater-k8s/headwater/protect/certs"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/prove"
	"github.com/headwater-k8s/headwater/protect/register"
	"github.com/headwater-k8s/headwater/protect/spec"
	"github.com/headwater-k8s/headwater/protect/webhook"
)

// Module protects sources: only users that a rule allows can change them.
var Module = fx.Module("protect",
	fx.Decorate(func(log *zap.Logger) *zap.Logger { return log.Named("protect") }),
	fx.Provide(newModule),
)

// defaultAddress is the default address that the webhook listens on.
const defaultAddress = ":9443"

// listenRetry is the pause before the module retries work that failed to start,
// for example because the address is in use.
const listenRetry = 5 * time.Second

// Options are set by flags.
type Options struct {
	// Namespace is Headwater's own namespace.
	Namespace string
	// WebhookURL is the URL at which the API server calls the webhook. Empty
	// means the Service headwater-webhook.
	WebhookURL string
	// WebhookAddress is the address that the webhook listens on. Empty means
	// defaultAddress.
	WebhookAddress string
	// Drain is how long the webhook keeps serving after a stop is requested. A
	// Service can send requests to a terminating pod for that long.
	Drain time.Duration
	// Settle is how long a new CA is published before the webhook serves a
	// certificate that it signed. Zero means certs.DefaultSettle.
	Settle time.Duration
	// TLS are the versions and cipher suites that the webhook serves.
	TLS serve.TLS
	// Configuration is Headwater's own ConfigMap. The webhook validates writes
	// to it while it is registered.
	Configuration decide.OwnConfiguration
}

// Identity is the user name that Headwater's requests carry. It is empty until
// Set is called, and then no user matches it.
type Identity struct{ name atomic.Pointer[string] }

// Set stores the user name.
func (i *Identity) Set(name string) { i.name.Store(&name) }

// Name returns the user name, or "" before Set.
func (i *Identity) Name() string {
	if name := i.name.Load(); name != nil {
		return *name
	}
	return ""
}

// params are the dependencies of the module.
type params struct {
	fx.In

	Clients  *kube.Clients
	Key      *digestkey.Key
	Caches   *informers.Caches
	Events   *events.Recorder
	Registry *prometheus.Registry
	Log      *zap.Logger
	Rules    *rules.Live[spec.Rule]
	Options  Options
	Identity *Identity
	Settings *live.Value[spec.Settings]
}

// result is what the module provides to the application.
type result struct {
	fx.Out

	View *View
	// Registration and Prover run on the leader only.
	Registration leader.Runnable `group:"leader"`
	Prover       leader.Runnable `group:"leader"`
	// Webhook and Certificates run on every replica. Webhook answers reviews
	// until it has drained, so the caches it reads must stop after it.
	Webhook      leader.Runnable `group:"replica"`
	Certificates leader.Runnable `group:"replica"`
	// Permissions are what the rules and settings need at the start.
	Permissions []kube.Permission `group:"permissions,flatten"`
	Check       serve.Check       `group:"checks"`
	// Certificate is the webhook's, which /metrics serves too: one CA verifies both.
	Certificate serve.Certificate
}

// newModule builds the module without starting anything. It fails if the
// webhook URL or the identity of the prover is invalid.
func newModule(p params) (result, error) {
	endpoint, err := spec.NewEndpoint(p.Options.WebhookURL, p.Options.Namespace)
	if err != nil {
		return result{}, err
	}
	needed := func() bool { return spec.HasRules(p.Rules) }
	access, err := watchBindings(p.Clients, p.Caches, needed, p.Log)
	if err != nil {
		return result{}, err
	}
	clk := clock.RealClock{}
	certificateMetrics := certs.NewMetrics(p.Registry)
	world := cachedWorld{identity: p.Identity, settings: p.Settings, caches: p.Caches, access: access, clock: clk}
	probing := decide.ServiceAccountUser(p.Options.Namespace, prove.ProverAccount)
	record := newRecorder(p, probing)
	decide := decider(p, world)
	keeper := certs.NewKeeper(p.Clients.Typed, certificateOrigin(p, endpoint, clk, certificateMetrics), cmp.Or(p.Options.Settle, certs.DefaultSettle), clk, certificateMetrics, p.Log)
	endpointFor := func(bundle []byte) spec.Endpoint { return withSegment(endpoint, p.Key, bundle) }
	paths := webhook.NewPaths(clk)
	keeper.OnRegistered = paths.Registered
	keeper.OnChange(func() { paths.Expect(endpointFor(keeper.Bundle()).Segment) })
	reviewer := webhook.NewReviewer(webhook.Reviewer{
		ScopeAt: paths.ScopeAt, Ready: world.ready, Decide: decide, Own: p.Options.Configuration, Record: record.record, Clock: clk, Log: p.Log,
	})
	server := webhook.NewServer(cmp.Or(p.Options.WebhookAddress, defaultAddress), p.Options.Drain, reviewer, p.Options.TLS.Config(keeper.Serving), p.Log)
	prober, err := p.Clients.As(probing, prove.ProverGroup)
	if err != nil {
		return result{}, err
	}
	prover := &prove.Prover{
		Prober: prober, Store: configmap.Store{Client: p.Clients.Typed, Namespace: p.Options.Namespace, Name: prove.ProofsConfigMap}, Namespace: p.Options.Namespace, Rules: p.Rules,
		Protected: prove.ProtectedBy(p.Caches), Source: p.Caches.Sources.Get, Clock: clk, Events: p.Events, Metrics: prove.NewMetrics(p.Registry), Log: p.Log, Wake: loop.NewWake(),
	}
	registration := &register.Registration{
		Client: p.Clients.Typed, Owner: p.Clients.Owner, Namespace: p.Options.Namespace, Versions: register.Versions{Store: configmap.Store{Client: p.Clients.Typed, Namespace: p.Options.Namespace, Name: register.RegisteredConfigMap}},
		Rules: p.Rules, Settings: p.Settings, World: world.world, WorldReady: world.ready,
		SourcesRead: func() bool { return sourcesRead(p.Rules, p.Caches.Sources) },
		Endpoint:    endpointFor, Own: p.Options.Configuration, Bundle: keeper.Bundle, Answering: server.Listening,
		Proof: prover.Proof, OnChange: prover.Changed,
		Clock: clk, Events: p.Events, Metrics: register.NewMetrics(p.Registry), Log: p.Log, Wake: loop.NewWake(),
	}
	prover.Engine, prover.Registered, prover.OnChange = registration.InForce, registration.Registered, registration.Changed
	keeper.OnChange(registration.Changed)
	if err := access.onChange(registration.Bound); err != nil {
		return result{}, err
	}
	if err := onSources(p.Caches.Sources, registration.Changed, prover.Changed); err != nil {
		return result{}, err
	}
	webhookNeeded := func() bool { return needed() && p.Settings.Load().Engine != spec.EnginePolicy }
	return result{
		View:         &View{prover, registration.InForce},
		Registration: leader.Runnable{Name: "protect registration", Run: registration.Run},
		Prover:       leader.Runnable{Name: "protect prover", Run: prover.Run},
		Webhook:      leader.Runnable{Name: "protect webhook", Run: whenNeeded(webhookNeeded, p.Rules, p.Log, server.Run)},
		Certificates: leader.Runnable{Name: "protect certificates", Run: whenNeeded(webhookNeeded, p.Rules, p.Log, keeper.Run)},
		Permissions:  permissions(needed(), p.Settings.Load(), p.Options.Namespace),
		Check:        newCheck(webhookNeeded, server, keeper), Certificate: keeper.Serving,
	}, nil
}

func newRecorder(p params, prober string) recorder {
	return recorder{
		prober: prober, isKnown: knownObjects{p.Caches}.isKnown,
		rules: p.Rules, source: p.Caches.Sources.Get, events: p.Events, metrics: newMetrics(p.Registry), log: p.Log,
	}
}

// onSources calls changed when there may be other sources than before.
func onSources(sources *informers.Sources, changed ...func()) error {
	_, err := sources.OnChange(func(change informers.Change[*object.Full]) {
		if change.Added || change.Deleted || !maps.Equal(change.Old.Labels, change.New.Labels) { // a label can make an object a source
			for _, call := range changed {
				call()
			}
		}
	})
	return err
}

// withSegment returns endpoint with the segment for a CA bundle. It has none without a
// bundle, or while the digest key is not loaded, which is before anything is registered.
func withSegment(endpoint spec.Endpoint, key *digestkey.Key, bundle []byte) spec.Endpoint {
	if hasher, err := key.Hasher(); err == nil && bundle != nil {
		endpoint.Segment = hasher.Of("webhook-path", bundle).String()
	}
	return endpoint
}

// decider returns the function that decides a review.
func decider(p params, world cachedWorld) func(decide.Request) decide.Verdict {
	return func(request decide.Request) decide.Verdict {
		switch request.Scope.About {
		case decide.AboutConfiguration:
			return p.Options.Configuration.Judge(request)
		case decide.AboutReach:
			return decide.Reached()
		default:
			return decide.Decide(request, p.Rules.Load(), world.world())
		}
	}
}

// certificateOrigin returns the Secret named by
// protect.certificates.secretName, or Headwater's own certificate.
func certificateOrigin(p params, endpoint spec.Endpoint, clk clock.Clock, m *certs.Metrics) certs.Origin {
	if name := p.Settings.Load().Certificates.SecretName; name != "" {
		return &certs.Provided{
			Namespace: p.Options.Namespace, Name: name, Host: endpoint.ServerName, Events: p.Events, Clock: clk, Metrics: m, Log: p.Log,
		}
	}
	return &certs.Own{Client: p.Clients.Typed, Namespace: p.Options.Namespace, Hosts: endpoint.Hosts, Events: p.Events, Clock: clk, Log: p.Log}
}

// whenNeeded returns a function that waits until needed returns true, then runs
// work. It checks again after each reload of the rules. If work was needed from
// the start, its error is returned and ends the process. Otherwise the error is
// logged and work is retried, so that the rest of Headwater keeps running.
func whenNeeded(needed func() bool, live *rules.Live[spec.Rule], log *zap.Logger, work func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		late := awaitNeeded(ctx, needed, live)
		for ctx.Err() == nil {
			err := work(ctx)
			if err == nil || !late {
				return err
			}
			log.Error("protection failed to start; retrying", zap.Duration("after", listenRetry), zap.Error(err))
			select {
			case <-ctx.Done():
			case <-time.After(listenRetry):
			}
		}
		return nil
	}
}

func newCheck(needed func() bool, server *webhook.Server, keeper *certs.Keeper) serve.Check {
	return serve.Check{Name: "protect", Ready: func() error {
		if !needed() {
			return nil
		}
		if !server.Listening() {
			return errors.New("the webhook is not listening")
		}
		return keeper.Ready()
	}}
}

// cachedWorld builds a decide.World from the caches.
type cachedWorld struct {
	identity *Identity
	settings *live.Value[spec.Settings]
	caches   *informers.Caches
	access   *accessIndex
	clock    clock.PassiveClock
}

// ready reports whether the namespaces and ClusterRoleBindings are cached, so
// that exempt users are recognised. Until a rule's source namespace is cached,
// hasSource reports that the source exists. While namespaces cannot be read, none is known
// to terminate, so that a source in one that does is not deleted.
func (w cachedWorld) ready() bool {
	namespaces := w.caches.Namespaces
	return w.access.hasSynced() && (namespaces.HasSynced() || !slices.Contains(w.caches.Awaited(), namespaces.Name()))
}

func (w cachedWorld) world() decide.World {
	return decide.World{
		Headwater:        w.identity.Name(),
		SystemIdentities: w.settings.Load().SystemIdentities,
		Terminating: func(name string) bool {
			namespace, found := w.caches.Namespaces.Get("", name)
			return found && namespace.Terminating
		},
		HasSource: w.hasSource,
		Bound:     w.access.isBound,
		Holders:   w.access.holders,
		Now:       w.clock.Now,
	}
}

// sourcesRead reports whether the source namespaces of all rules are cached.
func sourcesRead(live *rules.Live[spec.Rule], sources *informers.Sources) bool {
	return !slices.ContainsFunc(live.Load().All(), func(rule spec.Rule) bool {
		_, synced := sources.Of(rule.Base)
		return !synced
	})
}

func (w cachedWorld) hasSource(rule spec.Rule) bool {
	sources, synced := w.caches.Sources.Of(rule.Base)
	return len(sources) > 0 || !synced
}
