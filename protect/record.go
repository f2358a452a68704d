package protect

import (
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// recorder tells of verdicts: a metric for each, a log line for each violation
// of a rule, and an Event for each that was denied or passed on record alone;
// whom a rule warns sees it themselves. It never blocks. Of the attempts of
// the prover, which tells itself what they show, it says nothing.
type recorder struct {
	prober string
	rules  *rules.Live[Rule]
	source func(object.Ref) (*object.Full, bool)
	events interface{ Record(kube.Event) }
	// onlooker, when there is one, is told of each violation.
	onlooker Onlooker
	metrics  *metrics
	log      *zap.Logger
}

// Onlooker is told of violations as they are judged, to show them. It must not
// wait.
type Onlooker interface{ Violated(violation Violation) }

// Violation is a request that a rule does not allow, by names alone.
type Violation struct {
	Outcome   Outcome
	User      string
	Operation Operation
	Object    string
	Rule      string
	Why       string
	DryRun    bool
}

func (r recorder) record(request Request, verdict Verdict, took time.Duration) {
	if request.User.Name == r.prober {
		return
	}
	if request.Question.About == AboutConfiguration {
		r.recordConfiguration(request, verdict)
		return
	}
	r.metrics.reviewed(request, verdict, took)
	if verdict.Message == "" {
		return
	}
	r.log.Info("request violates a rule",
		zap.String("verdict", string(verdict.Outcome())),
		zap.String("user", request.User.Name), zap.Strings("groups", request.User.Groups),
		zap.String("operation", string(request.Operation)), zap.String("object", request.object()),
		zap.String("rule", verdict.Rule), zap.String("reason", string(verdict.Reason)),
		zap.Strings("changed", verdict.Changed), zap.Bool("dryRun", request.DryRun),
	)
	if r.onlooker != nil {
		r.onlooker.Violated(Violation{
			Outcome: verdict.Outcome(), User: request.User.Name, Operation: request.Operation, Object: request.object(),
			Rule: verdict.Rule, Why: verdict.Message, DryRun: request.DryRun,
		})
	}
	// A dry run has no side effects.
	outcome := verdict.Outcome()
	if request.DryRun || outcome != OutcomeDenied && outcome != OutcomeAudited {
		return
	}
	about := r.about(request, verdict.Rule)
	if about == nil {
		return
	}
	reason := "Denied"
	if outcome == OutcomeAudited {
		reason = "Audited"
	}
	r.events.Record(kube.Event{
		Rule: verdict.Rule, About: about, Warning: true, Reason: reason, Action: string(request.Operation),
		Note: fmt.Sprintf("%s %s of %s by %s: %s", outcome, request.Operation, request.object(), request.User.Name, verdict.Message),
	})
}

// recordConfiguration logs that a configuration was refused. The requester is
// shown what is wrong with it.
func (r recorder) recordConfiguration(request Request, verdict Verdict) {
	r.metrics.configs.WithLabelValues(string(verdict.Outcome()), string(verdict.Reason)).Inc()
	if verdict.Allowed {
		return
	}
	r.log.Info("refused a configuration that is not valid", zap.String("user", request.User.Name), zap.Strings("groups", request.User.Groups),
		zap.String("object", request.object()), zap.String("reason", string(verdict.Reason)), zap.Bool("dryRun", request.DryRun))
}

// about is the object that request is about; the subject of the rule for a
// namespace or where no such object is known. It is nil without any of them.
func (r recorder) about(request Request, ruleName string) *corev1.ObjectReference {
	if ref, known := request.ref(); known && request.Old != nil {
		return &corev1.ObjectReference{
			APIVersion: "v1", Kind: string(ref.Kind), Namespace: ref.Namespace, Name: ref.Name, UID: request.Old.UID,
		}
	}
	rule, found := r.rules.Load().Named(ruleName)
	if !found {
		return nil
	}
	return subjectOf(*rule, r.source)
}

// subjectOf is what an Event about rule as a whole is about: its source, or the
// namespace of the sources that it selects.
func subjectOf(rule Rule, source func(object.Ref) (*object.Full, bool)) *corev1.ObjectReference {
	ref := rule.Source.Ref()
	if rule.BySelector() {
		return &corev1.ObjectReference{APIVersion: "v1", Kind: string(KindNamespace), Namespace: ref.Namespace, Name: ref.Namespace}
	}
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: string(ref.Kind), Namespace: ref.Namespace, Name: ref.Name}
	if known, _ := source(ref); known != nil {
		about.UID = known.UID
	}
	return about
}

// object names what the request is about, as far as it is known.
func (r Request) object() string {
	name := r.Name
	switch {
	case r.Old != nil:
		name = r.Old.Name
	case r.New != nil:
		name = r.New.Name
	}
	if r.Kind == KindNamespace {
		return string(r.Kind) + " " + name
	}
	return string(r.Kind) + " " + r.Namespace + "/" + name
}
