package protect

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
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

const (
	// ProverAccount is the service account, in Headwater's own namespace, in
	// whose name attempts are made. It may write Secrets and ConfigMaps, and no
	// rule exempts it.
	ProverAccount = "headwater-prober"
	// ProofsConfigMap holds the Standing of each rule, in Headwater's own
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
	// settling is how long an API server may take to learn of a change.
	settling = 5 * time.Second
)

// Prover tries over and over whether what should be refused is: as an account
// that no rule exempts, and as dry runs. One replica runs it, the leader.
type Prover struct {
	// prober makes the attempts.
	prober    kubernetes.Interface
	store     configmap.Store
	namespace string
	rules     *rules.Live[Rule]
	// engine is the one in force, which is not the one that is asked for where
	// there are no policies.
	engine func() Engine
	// protected returns what of a rule is there to try it on.
	protected func(Rule) []object.Ref
	source    func(object.Ref) (*object.Full, bool)
	// changed is called when the Proof is another one.
	changed func()
	clock   clock.Clock
	events  interface{ Record(kube.Event) }
	metrics *ProofMetrics
	log     *zap.Logger
	wake    loop.Wake
	proof   atomic.Pointer[Proof]
	// shown are the standings as the last look found them, for whoever asks.
	shown atomic.Pointer[map[string]Standing]

	// Owned by the loop.
	recorded  bool // standings hold what the ConfigMap does
	standings map[string]Standing
	lastTried time.Time            // as recorded
	unsure    map[string]time.Time // since when, by what
}

// Proof returns what the last attempts have shown.
func (p *Prover) Proof() Proof {
	if proof := p.proof.Load(); proof != nil {
		return *proof
	}
	return Proof{}
}

// Standing is that of rule, as View has it.
func (p *Prover) Standing(rule string) (standing Standing, known bool) {
	if shown := p.shown.Load(); shown != nil {
		standing, known = (*shown)[rule]
	}
	return standing, known
}

// Changed makes the prover look again.
func (p *Prover) Changed() { p.wake.Up() }

// Run looks until ctx ends.
func (p *Prover) Run(ctx context.Context) error {
	p.unsure, p.standings = map[string]time.Time{}, map[string]Standing{}
	defer p.rules.Subscribe(func(_, _ *rules.Set[Rule]) { p.wake.Up() })()
	loop.Loop{Wake: p.wake, Clock: p.clock, Log: p.log, Step: p.look}.Run(ctx)
	return nil
}

func (p *Prover) look(ctx context.Context) (again time.Duration, err error) {
	set := p.rules.Load()
	if !enforces(marksMode(set)) {
		p.conclude(Proof{Known: true})
		p.shown.Store(nil)
		return 0, p.clear(ctx)
	}
	if err := p.recall(ctx); err != nil {
		return 0, err
	}
	path := p.forge(ctx)
	p.concludeFrom(path)
	sure := path.by == p.wanted()
	standings := map[string]Standing{}
	for _, rule := range set.All() {
		standing, proven, tried := p.lookAt(ctx, rule, path)
		if !tried {
			continue
		}
		p.metrics.prove(rule.Name, proven)
		standings[rule.Name] = standing
		sure = sure && proven
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	p.forget(standings)
	maps.DeleteFunc(standings, func(_ string, s Standing) bool { return s.Since.IsZero() }) // nothing to tell yet
	p.shown.Store(&standings)
	return p.pause(sure), p.record(ctx, standings)
}

// clear has nothing be on record, where there is nothing to refuse. Without the
// permission to read there is nothing on record.
func (p *Prover) clear(ctx context.Context) error {
	if err := p.recall(ctx); err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	p.forget(nil)
	return p.record(ctx, nil)
}

// wanted is the engine that is to refuse first.
func (p *Prover) wanted() Engine {
	if p.engine() == EngineWebhook {
		return EngineWebhook
	}
	return EnginePolicy
}

// pause is how long to wait before the next look.
func (p *Prover) pause(sure bool) time.Duration {
	switch doubt := p.unsureFor("all", sure); {
	case sure:
		return proofInterval
	case doubt < longDoubt:
		return doubtInterval
	default:
		return longDoubtInterval
	}
}

// forget drops what was proven of rules that are not there any more.
func (p *Prover) forget(standings map[string]Standing) {
	for rule := range p.standings {
		if _, still := standings[rule]; !still {
			p.metrics.proven.DeleteLabelValues(rule)
		}
	}
}

// lookAt tries to change what rule protects, if it enforces and there is any. To
// protect, a rule needs forging a clone be refused as well: path is how that went.
func (p *Prover) lookAt(ctx context.Context, rule Rule, path finding) (standing Standing, proven, tried bool) {
	findings := []finding{path}
	if rule.enforced() {
		for _, ref := range p.protected(rule) {
			if f := p.attempt(ctx, rule, ref); f != gone {
				findings = append(findings, f)
			}
		}
	}
	proven, why := judgeFindings(findings)
	standing = p.standings[rule.Name].next(proven, why, p.unsureFor("rule "+rule.Name, proven), settling, p.clock.Now().Truncate(time.Second))
	return standing, proven, len(findings) > 1
}

// concludeFrom takes a refusal at its word, and success or silence once they
// have lasted for longer than a change needs to be seen.
func (p *Prover) concludeFrom(path finding) {
	unsure := p.unsureFor("path", path.by != "")
	switch {
	case path.by != "":
		p.conclude(Proof{Known: true, By: path.by})
	case unsure < settling:
	case path.problem == "" || !p.Proof().Known:
		p.conclude(Proof{Known: true})
	}
}

func (p *Prover) conclude(proof Proof) {
	if before := p.proof.Swap(&proof); before == nil || *before != proof {
		p.log.Info(proof.sentence(), zap.String("engine", string(proof.By)))
		p.changed()
	}
}

// unsureFor is for how long there has been a doubt about what.
func (p *Prover) unsureFor(what string, sure bool) time.Duration {
	if sure {
		delete(p.unsure, what)
		return 0
	}
	since, was := p.unsure[what]
	if !was {
		since = p.clock.Now()
		p.unsure[what] = since
	}
	return p.clock.Since(since)
}

// recall reads what an earlier leader has recorded.
func (p *Prover) recall(ctx context.Context) error {
	if p.recorded {
		return nil
	}
	stored, err := p.store.Read(ctx)
	if err != nil {
		return err
	}
	p.lastTried, _ = time.Parse(time.RFC3339, stored[LastTried])
	for rule, text := range stored {
		if standing, err := ParseStanding(text); err == nil { // else it is looked at anew
			p.standings[rule] = standing
		}
	}
	p.recorded = true
	return nil
}

// record writes the standings where they differ from what is recorded, or that
// was long ago.
func (p *Prover) record(ctx context.Context, standings map[string]Standing) error {
	now, data := p.clock.Now(), map[string]string{}
	recent := len(standings) == 0 || now.Sub(p.lastTried) < RecordInterval
	if recent && maps.Equal(standings, p.standings) {
		return nil
	}
	for rule, standing := range standings {
		data[rule] = standing.String()
	}
	if len(standings) > 0 {
		data[LastTried] = now.UTC().Format(time.RFC3339)
	}
	if err := p.store.Write(ctx, data); err != nil {
		return err
	}
	for _, rule := range p.rules.Load().All() {
		if standing, tried := standings[rule.Name]; tried && standing != p.standings[rule.Name] {
			p.tell(rule, standing)
		}
	}
	p.standings, p.lastTried = standings, now
	return nil
}

// tell says how rule stands from now on.
func (p *Prover) tell(rule Rule, standing Standing) {
	sentence := "the API server does not refuse everything that the rule protects from"
	if standing.Proven {
		sentence = "the API server refuses what the rule protects from"
	}
	p.log.Info(sentence, zap.String("rule", rule.Name), zap.Bool("proven", standing.Proven), zap.String("why", standing.Why))
	event := kube.Event{Rule: rule.Name, About: subjectOf(rule, p.source), Action: "Prove", Persisting: true}
	if standing.Proven {
		event.Reason, event.Note = "ProtectionProven", fmt.Sprintf("rule %q: the API server refuses to let others change this", rule.Name)
	} else {
		event.Warning, event.Reason = true, "ProtectionNotProven"
		event.Note = fmt.Sprintf("rule %q: not seen to protect this: %s; headwater who-can-edit %s lists who may", rule.Name, standing.Why, rule.Name)
	}
	p.events.Record(event)
}
