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
	// ProverAccount is the service account, in Headwater's own namespace, in
	// whose name attempts are made. It may write Secrets and ConfigMaps, and no
	// rule exempts it.
	ProverAccount = "headwater-prober"
	// ProofsConfigMap holds the Status of each rule, in Headwater's own
	// namespace.
	ProofsConfigMap = "headwater-protection"
	// LastTried is the key under which it says when that was last looked at. No
	// rule can be called so.
	LastTried = "lastTried"
	// RecordInterval is how often that is written.
	RecordInterval = 10 * time.Minute

	// proofInterval is the time between two looks where all is as it should be;
	// where it is not, doubtInterval, and longDoubtInterval once that has lasted
	// for longDoubt.
	proofInterval     = time.Minute
	doubtInterval     = time.Second
	longDoubtInterval = 10 * time.Second
	longDoubt         = 30 * time.Second
	// Settling is how long an API server may take to learn of a change.
	Settling = 5 * time.Second
)

// Prover tries over and over whether what should be refused is: as an account
// that no rule exempts, and as dry runs. One replica runs it, the leader.
type Prover struct {
	// prober makes the attempts.
	Prober    kubernetes.Interface
	Store     configmap.Store
	Namespace string
	Rules     *rules.Live[spec.Rule]
	// engine is the one in force, which is not the one that is asked for where
	// there are no policies.
	Engine func() spec.Engine
	// protected returns what of a rule is there to try it on.
	Protected func(spec.Rule) []object.Ref
	Source    func(object.Ref) (*object.Full, bool)
	// changed is called when the Proof is another one.
	OnChange func()
	Clock    clock.Clock
	Events   interface{ Record(events.Event) }
	Metrics  *Metrics
	Log      *zap.Logger
	Wake     loop.Wake
	proof    atomic.Pointer[Proof]
	// current are the standings as the last look found them, for whoever asks.
	current atomic.Pointer[map[string]Status]

	// Owned by the loop.
	loaded     bool // standings hold what the ConfigMap does
	stored     map[string]Status
	lastTried  time.Time            // as recorded
	doubtSince map[string]time.Time // since when, by what
}

// Proof returns what the last attempts have shown.
func (p *Prover) Proof() Proof {
	if proof := p.proof.Load(); proof != nil {
		return *proof
	}
	return Proof{}
}

// Status is that of rule, as View has it.
func (p *Prover) Status(rule string) (status Status, known bool) {
	if current := p.current.Load(); current != nil {
		status, known = (*current)[rule]
	}
	return status, known
}

// Changed makes the prover look again.
func (p *Prover) Changed() { p.Wake.Up() }

// Run looks until ctx ends.
func (p *Prover) Run(ctx context.Context) error {
	p.doubtSince, p.stored = map[string]time.Time{}, map[string]Status{}
	defer p.Rules.Subscribe(func(_, _ *rules.Set[spec.Rule]) { p.Wake.Up() })()
	loop.Loop{Wake: p.Wake, Clock: p.Clock, Log: p.Log, Step: p.verify}.Run(ctx)
	return nil
}

func (p *Prover) verify(ctx context.Context) (requeueAfter time.Duration, err error) {
	set := p.Rules.Load()
	if !spec.Enforces(decide.MarksMode(set)) {
		p.setProof(Proof{Known: true})
		p.current.Store(nil)
		return 0, p.clear(ctx)
	}
	if err := p.load(ctx); err != nil {
		return 0, err
	}
	forgery := p.tryForgedClone(ctx)
	p.updateProof(forgery)
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
	maps.DeleteFunc(statuses, func(_ string, s Status) bool { return s.Since.IsZero() }) // nothing to tell yet
	p.current.Store(&statuses)
	return p.nextInterval(verified), p.record(ctx, statuses)
}

// clear has nothing be on record, where there is nothing to refuse. Without the
// permission to read there is nothing on record.
func (p *Prover) clear(ctx context.Context) error {
	if err := p.load(ctx); err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	p.deleteMetrics(nil)
	return p.record(ctx, nil)
}

// expectedEngine is the engine that is to refuse first.
func (p *Prover) expectedEngine() spec.Engine {
	if p.Engine() == spec.EngineWebhook {
		return spec.EngineWebhook
	}
	return spec.EnginePolicy
}

// nextInterval is how long to wait before the next look.
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

// deleteMetrics drops what was proven of rules that are not there any more.
func (p *Prover) deleteMetrics(statuses map[string]Status) {
	for rule := range p.stored {
		if _, found := statuses[rule]; !found {
			p.Metrics.proven.DeleteLabelValues(rule)
		}
	}
}

// verifyRule tries to change what rule protects, if it enforces and there is any. To
// protect, a rule needs forging a clone be refused as well: path is how that went.
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

// updateProof takes a refusal at its word, and success or silence once they
// have lasted for longer than a change needs to be seen.
func (p *Prover) updateProof(forgery finding) {
	doubtful := p.doubtfulFor("path", forgery.by != "")
	switch {
	case forgery.by != "":
		p.setProof(Proof{Known: true, By: forgery.by})
	case doubtful < Settling:
	case forgery.problem == "" || !p.Proof().Known:
		p.setProof(Proof{Known: true})
	}
}

func (p *Prover) setProof(proof Proof) {
	if before := p.proof.Swap(&proof); before == nil || *before != proof {
		p.Log.Info(proof.sentence(), zap.String("engine", string(proof.By)))
		p.OnChange()
	}
}

// doubtfulFor is for how long there has been a doubt about what.
func (p *Prover) doubtfulFor(what string, verified bool) time.Duration {
	if verified {
		delete(p.doubtSince, what)
		return 0
	}
	since, known := p.doubtSince[what]
	if !known {
		since = p.Clock.Now()
		p.doubtSince[what] = since
	}
	return p.Clock.Since(since)
}

// load reads what an earlier leader has recorded.
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
		if status, err := ParseStatus(text); err == nil { // else it is looked at anew
			p.stored[rule] = status
		}
	}
	p.loaded = true
	return nil
}

// record writes the standings where they differ from what is recorded, or that
// was long ago.
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

// reportStatus says how rule stands from now on.
func (p *Prover) reportStatus(rule spec.Rule, status Status) {
	sentence := "the API server does not refuse everything that the rule protects from"
	if status.Proven {
		sentence = "the API server refuses what the rule protects from"
	}
	p.Log.Info(sentence, zap.String("rule", rule.Name), zap.Bool("proven", status.Proven), zap.String("why", status.Why))
	event := events.Event{Rule: rule.Name, About: spec.SubjectOf(rule, p.Source), Action: "Prove", Persisting: true}
	if status.Proven {
		event.Reason, event.Note = "ProtectionProven", fmt.Sprintf("rule %q: the API server refuses to let others change this", rule.Name)
	} else {
		event.Warning, event.Reason = true, "ProtectionNotProven"
		event.Note = fmt.Sprintf("rule %q: not seen to protect this: %s; headwater who-can-edit %s lists who may", rule.Name, status.Why, rule.Name)
	}
	p.Events.Record(event)
}
