package prove

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/configmap"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/spec"
)

const (
	// ProverAccount is the service account, in Headwater's namespace, that the
	// prover impersonates. No rule exempts it.
	ProverAccount = "headwater-prober"
	// ProverGroup is the group, impersonated too, that may write Secrets and ConfigMaps. The
	// account alone may nothing: who may impersonate the accounts of the namespace could
	// read every Secret by the answer to a patch.
	ProverGroup = "headwater-prober"
	// ProofsConfigMap is the ConfigMap, in Headwater's namespace, that stores
	// the Status of each rule.
	ProofsConfigMap = "headwater-protection"
	// LastTried is its key for the time of the last attempt. No rule can have
	// this name.
	LastTried = "lastTried"
	// RecordInterval is how often the time of the last attempt is stored.
	RecordInterval = 10 * time.Minute

	// proofInterval is the interval between attempts while every rule is
	// verified. Otherwise it is doubtInterval, and longDoubtInterval after
	// longDoubt.
	proofInterval     = time.Minute
	doubtInterval     = time.Second
	longDoubtInterval = 10 * time.Second
	longDoubt         = 30 * time.Second
	// Settling is the maximum time until a change reaches every API server.
	Settling = 5 * time.Second
)

// Prover verifies periodically that the API server denies what the rules
// forbid. It makes dry-run requests as an account that no rule exempts. One
// replica runs it, the leader.
type Prover struct {
	// Prober is a client that impersonates ProverAccount.
	Prober    kubernetes.Interface
	Store     configmap.Store
	Namespace string
	Rules     *rules.Live[spec.Rule]
	// Engine returns the engine in force. It differs from the configured one if
	// the API server does not serve policies.
	Engine func() spec.Engine
	// Registered reports whether the webhook is registered, and so can deny anything.
	Registered func() bool
	// Protected returns the objects of a rule to try.
	Protected func(spec.Rule) []object.Ref
	Source    func(object.Ref) (*object.Full, bool)
	// OnChange is called when the Proof changes.
	OnChange func()
	Clock    clock.Clock
	Events   interface{ Record(events.Event) }
	Metrics  *metrics
	Log      *zap.Logger
	Wake     loop.Wake
	proof    atomic.Pointer[Proof]
	// current are the statuses of the last attempts, for Status.
	current atomic.Pointer[map[string]Status]

	// Used only by the loop.
	loaded     bool // stored has the content of the ConfigMap
	stored     map[string]Status
	lastTried  time.Time            // as stored
	doubtSince map[string]time.Time // by subject
	// silent is true once it was reported that the webhook is silent.
	silent bool
}

// Proof returns the result of the last attempt to forge a clone.
func (p *Prover) Proof() Proof {
	if proof := p.proof.Load(); proof != nil {
		return *proof
	}
	return Proof{}
}

// Status returns the status of rule. known is false if it was not tried.
func (p *Prover) Status(rule string) (status Status, known bool) {
	if current := p.current.Load(); current != nil {
		status, known = (*current)[rule]
	}
	return status, known
}

// Changed triggers new attempts.
func (p *Prover) Changed() { p.Wake.Notify() }

// Run makes attempts until ctx ends.
func (p *Prover) Run(ctx context.Context) error {
	p.doubtSince, p.stored = map[string]time.Time{}, map[string]Status{}
	defer p.Rules.Subscribe(func(_, _ *rules.Set[spec.Rule]) { p.Wake.Notify() })()
	loop.Loop{Wake: p.Wake, Clock: p.Clock, Log: p.Log, Step: p.verify}.Run(ctx)
	return nil
}

func (p *Prover) verify(ctx context.Context) (requeueAfter time.Duration, err error) {
	set := p.Rules.Load()
	if !spec.Enforces(decide.MarksMode(set)) {
		p.setProof(Proof{Known: true})
		clear(p.doubtSince)
		p.current.Store(nil)
		return 0, p.clear(ctx)
	}
	if err := p.load(ctx); err != nil {
		return 0, err
	}
	forgery := p.tryForgedClone(ctx)
	again := p.updateProof(ctx, forgery)
	verified := forgery.by == p.expectedEngine()
	statuses := map[string]Status{}
	for _, rule := range set.All() {
		status, proven, tried := p.verifyRule(ctx, rule, forgery)
		if !tried {
			continue
		}
		p.Metrics.set(rule.Name, proven)
		statuses[rule.Name] = status
		verified = verified && proven
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	p.deleteMetrics(statuses)
	maps.DeleteFunc(statuses, func(_ string, s Status) bool { return s.Since.IsZero() }) // no result yet
	p.current.Store(&statuses)
	return min(p.nextInterval(verified), again), p.record(ctx, statuses)
}

// clear deletes the stored statuses when no rule enforces. Without the
// permission to read them, none were stored.
func (p *Prover) clear(ctx context.Context) error {
	if err := p.load(ctx); err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	p.deleteMetrics(nil)
	return p.record(ctx, nil)
}

// expectedEngine returns the engine that should deny first. The API server
// evaluates policies before it calls webhooks.
func (p *Prover) expectedEngine() spec.Engine {
	if p.Engine() == spec.EngineWebhook {
		return spec.EngineWebhook
	}
	return spec.EnginePolicy
}

// nextInterval returns the time until the next attempts. verified is true if
// every rule was verified.
func (p *Prover) nextInterval(verified bool) time.Duration {
	switch doubt := p.doubtfulFor("all", verified); {
	case verified:
		return proofInterval
	case doubt < longDoubt:
		return doubtInterval
	default:
		return longDoubtInterval
	}
}

// deleteMetrics deletes the metrics of rules without a status.
func (p *Prover) deleteMetrics(statuses map[string]Status) {
	for rule := range p.stored {
		if _, found := statuses[rule]; !found {
			p.Metrics.proven.DeleteLabelValues(rule)
		}
	}
}

// verifyRule tries to change the objects that rule protects. A rule is proven
// only if all attempts and forgery, the attempt to forge a clone, were denied.
// tried is false if the rule does not enforce or has no objects.
func (p *Prover) verifyRule(ctx context.Context, rule spec.Rule, forgery finding) (status Status, proven, tried bool) {
	findings := []finding{forgery}
	if rule.Enforced() {
		for _, ref := range p.Protected(rule) {
			if f := p.try(ctx, rule, ref); f != notFound {
				findings = append(findings, f)
			}
		}
	}
	proven, why := judgeFindings(findings)
	status = p.stored[rule.Name].next(proven, why, p.doubtfulFor("rule "+rule.Name, proven), Settling, p.Clock.Now().Truncate(time.Second))
	return status, proven, len(findings) > 1
}

// updateProof sets the Proof from the attempt to forge a clone and one that only the webhook
// denies, both at once: what one says is read together with the other. A denial counts at
// once. Success or an error counts only after Settling, because a change may not have reached
// every API server, and an error only if nothing is known. requeueAfter is when to try the
// webhook again at the latest.
func (p *Prover) updateProof(ctx context.Context, forgery finding) (requeueAfter time.Duration) {
	proof, doubtful := p.Proof(), p.doubtfulFor("path", forgery.by != "")
	if forgery.by != "" || doubtful >= Settling && (forgery.problem == "" || !proof.Known) {
		proof.Known, proof.By, proof.Allowed = true, forgery.by, forgery == finding{}
	}
	proof.Webhook, requeueAfter = p.verifyWebhook(ctx, proof.Webhook)
	p.setProof(proof)
	return requeueAfter
}

func (p *Prover) setProof(proof Proof) {
	if before := p.proof.Swap(&proof); before == nil || *before != proof {
		p.Log.Info(proof.sentence(), zap.String("engine", string(proof.By)), zap.String("webhook", string(proof.Webhook)))
		p.OnChange()
	}
}

// doubtfulFor returns for how long subject has not been verified.
func (p *Prover) doubtfulFor(subject string, verified bool) time.Duration {
	if verified {
		delete(p.doubtSince, subject)
		return 0
	}
	since, known := p.doubtSince[subject]
	if !known {
		since = p.Clock.Now()
		p.doubtSince[subject] = since
	}
	return p.Clock.Since(since)
}

// load reads the statuses that an earlier leader stored.
func (p *Prover) load(ctx context.Context) error {
	if p.loaded {
		return nil
	}
	stored, err := p.Store.Read(ctx)
	if err != nil {
		return err
	}
	p.lastTried, _ = time.Parse(time.RFC3339, stored[LastTried])
	for rule, text := range stored {
		if status, err := ParseStatus(text); err == nil { // an unreadable status is replaced
			p.stored[rule] = status
		}
	}
	p.loaded = true
	return nil
}

// record stores statuses if they differ from the stored ones, or if
// RecordInterval has passed.
func (p *Prover) record(ctx context.Context, statuses map[string]Status) error {
	now, data := p.Clock.Now(), map[string]string{}
	recent := len(statuses) == 0 || now.Sub(p.lastTried) < RecordInterval
	if recent && maps.Equal(statuses, p.stored) {
		return nil
	}
	for rule, status := range statuses {
		data[rule] = status.String()
	}
	if len(statuses) > 0 {
		data[LastTried] = now.UTC().Format(time.RFC3339)
	}
	if err := p.Store.Write(ctx, data); err != nil {
		return err
	}
	for _, rule := range p.Rules.Load().All() {
		if status, tried := statuses[rule.Name]; tried && status != p.stored[rule.Name] {
			p.reportStatus(rule, status)
		}
	}
	p.stored, p.lastTried = statuses, now
	return nil
}

// reportStatus logs the new status of rule and records an Event.
func (p *Prover) reportStatus(rule spec.Rule, status Status) {
	sentence := "the API server allows changes that the rule forbids"
	if status.Proven {
		sentence = "verified: the API server denies what the rule forbids"
	}
	p.Log.Info(sentence, zap.String("rule", rule.Name), zap.Bool("proven", status.Proven), zap.String("why", status.Why))
	event := events.Event{Rule: rule.Name, About: spec.SubjectOf(rule, p.Source), Action: "Prove", Persisting: true}
	if status.Proven {
		event.Reason, event.Note = "ProtectionProven", fmt.Sprintf("rule %q is verified: the API server denies unauthorized changes", rule.Name)
	} else {
		event.Warning, event.Reason = true, "ProtectionNotProven"
		event.Note = fmt.Sprintf("rule %q is not verified: %s; run headwater who-can-edit %s to list exempt users", rule.Name, status.Why, rule.Name)
	}
	p.Events.Record(event)
}
