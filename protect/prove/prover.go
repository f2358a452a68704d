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
	// shown are the standings as the last look found them, for whoever asks.
	shown atomic.Pointer[map[string]Status]

	// Owned by the loop.
	recorded  bool // standings hold what the ConfigMap does
	standings map[string]Status
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

// Status is that of rule, as View has it.
func (p *Prover) Status(rule string) (standing Status, known bool) {
	if shown := p.shown.Load(); shown != nil {
		standing, known = (*shown)[rule]
	}
	return standing, known
}

// Changed makes the prover look again.
func (p *Prover) Changed() { p.Wake.Up() }

// Run looks until ctx ends.
func (p *Prover) Run(ctx context.Context) error {
	p.unsure, p.standings = map[string]time.Time{}, map[string]Status{}
	defer p.Rules.Subscribe(func(_, _ *rules.Set[spec.Rule]) { p.Wake.Up() })()
	loop.Loop{Wake: p.Wake, Clock: p.Clock, Log: p.Log, Step: p.verify}.Run(ctx)
	return nil
}

func (p *Prover) verify(ctx context.Context) (again time.Duration, err error) {
	set := p.Rules.Load()
	if !spec.Enforces(decide.MarksMode(set)) {
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
	standings := map[string]Status{}
	for _, rule := range set.All() {
		standing, proven, tried := p.verifyRule(ctx, rule, path)
		if !tried {
			continue
		}
		p.Metrics.prove(rule.Name, proven)
		standings[rule.Name] = standing
		sure = sure && proven
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	p.forget(standings)
	maps.DeleteFunc(standings, func(_ string, s Status) bool { return s.Since.IsZero() }) // nothing to tell yet
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
func (p *Prover) wanted() spec.Engine {
	if p.Engine() == spec.EngineWebhook {
		return spec.EngineWebhook
	}
	return spec.EnginePolicy
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
func (p *Prover) forget(standings map[string]Status) {
	for rule := range p.standings {
		if _, still := standings[rule]; !still {
			p.Metrics.proven.DeleteLabelValues(rule)
		}
	}
}

// verifyRule tries to change what rule protects, if it enforces and there is any. To
// protect, a rule needs forging a clone be refused as well: path is how that went.
func (p *Prover) verifyRule(ctx context.Context, rule spec.Rule, path finding) (standing Status, proven, tried bool) {
	findings := []finding{path}
	if rule.Enforced() {
		for _, ref := range p.Protected(rule) {
			if f := p.attempt(ctx, rule, ref); f != gone {
				findings = append(findings, f)
			}
		}
	}
	proven, why := judgeFindings(findings)
	standing = p.standings[rule.Name].next(proven, why, p.unsureFor("rule "+rule.Name, proven), Settling, p.Clock.Now().Truncate(time.Second))
	return standing, proven, len(findings) > 1
}

// concludeFrom takes a refusal at its word, and success or silence once they
// have lasted for longer than a change needs to be seen.
func (p *Prover) concludeFrom(path finding) {
	unsure := p.unsureFor("path", path.by != "")
	switch {
	case path.by != "":
		p.conclude(Proof{Known: true, By: path.by})
	case unsure < Settling:
	case path.problem == "" || !p.Proof().Known:
		p.conclude(Proof{Known: true})
	}
}

func (p *Prover) conclude(proof Proof) {
	if before := p.proof.Swap(&proof); before == nil || *before != proof {
		p.Log.Info(proof.sentence(), zap.String("engine", string(proof.By)))
		p.OnChange()
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
		since = p.Clock.Now()
		p.unsure[what] = since
	}
	return p.Clock.Since(since)
}

// recall reads what an earlier leader has recorded.
func (p *Prover) recall(ctx context.Context) error {
	if p.recorded {
		return nil
	}
	stored, err := p.Store.Read(ctx)
	if err != nil {
		return err
	}
	p.lastTried, _ = time.Parse(time.RFC3339, stored[LastTried])
	for rule, text := range stored {
		if standing, err := ParseStatus(text); err == nil { // else it is looked at anew
			p.standings[rule] = standing
		}
	}
	p.recorded = true
	return nil
}

// record writes the standings where they differ from what is recorded, or that
// was long ago.
func (p *Prover) record(ctx context.Context, standings map[string]Status) error {
	now, data := p.Clock.Now(), map[string]string{}
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
	if err := p.Store.Write(ctx, data); err != nil {
		return err
	}
	for _, rule := range p.Rules.Load().All() {
		if standing, tried := standings[rule.Name]; tried && standing != p.standings[rule.Name] {
			p.emit(rule, standing)
		}
	}
	p.standings, p.lastTried = standings, now
	return nil
}

// emit says how rule stands from now on.
func (p *Prover) emit(rule spec.Rule, standing Status) {
	sentence := "the API server does not refuse everything that the rule protects from"
	if standing.Proven {
		sentence = "the API server refuses what the rule protects from"
	}
	p.Log.Info(sentence, zap.String("rule", rule.Name), zap.Bool("proven", standing.Proven), zap.String("why", standing.Why))
	event := events.Event{Rule: rule.Name, About: spec.SubjectOf(rule, p.Source), Action: "Prove", Persisting: true}
	if standing.Proven {
		event.Reason, event.Note = "ProtectionProven", fmt.Sprintf("rule %q: the API server refuses to let others change this", rule.Name)
	} else {
		event.Warning, event.Reason = true, "ProtectionNotProven"
		event.Note = fmt.Sprintf("rule %q: not seen to protect this: %s; headwater who-can-edit %s lists who may", rule.Name, standing.Why, rule.Name)
	}
	p.Events.Record(event)
}
