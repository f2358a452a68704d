package protect

import (
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// recorder tells of verdicts: a metric for each, a log line for each violation
// of a rule, and an Event for each that was denied or passed on record alone;
// whom a rule warns sees it themselves. It never blocks. Of the attempts of
// the prover, which tells itself what they show, it says nothing.
type recorder struct {
	prober string
	rules  *rules.Live[spec.Rule]
	source func(object.Ref) (*object.Full, bool)
	events interface{ Record(events.Event) }
	// onlooker, when there is one, is told of each violation.
	observer Observer
	metrics  *metrics
	log      *zap.Logger
}

// Observer is told of violations as they are judged, to show them. It must not
// wait.
type Observer interface{ Violated(violation Violation) }

// Violation is a request that a rule does not allow, by names alone.
type Violation struct {
	Outcome   decide.Outcome
	User      string
	Operation spec.Operation
	Object    string
	Rule      string
	Why       string
	DryRun    bool
}

func (r recorder) record(request decide.Request, verdict decide.Verdict, took time.Duration) {
	if request.User.Name == r.prober {
		return
	}
	if request.Scope.About == decide.AboutConfiguration {
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
		zap.String("operation", string(request.Operation)), zap.String("object", request.Object()),
		zap.String("rule", verdict.Rule), zap.String("reason", string(verdict.Reason)),
		zap.Strings("changed", verdict.Changed), zap.Bool("dryRun", request.DryRun),
	)
	if r.observer != nil {
		r.observer.Violated(Violation{
			Outcome: verdict.Outcome(), User: request.User.Name, Operation: request.Operation, Object: request.Object(),
			Rule: verdict.Rule, Why: verdict.Message, DryRun: request.DryRun,
		})
	}
	// A dry run has no side effects.
	outcome := verdict.Outcome()
	if request.DryRun || outcome != decide.OutcomeDenied && outcome != decide.OutcomeAudited {
		return
	}
	about := r.about(request, verdict.Rule)
	if about == nil {
		return
	}
	reason := "Denied"
	if outcome == decide.OutcomeAudited {
		reason = "Audited"
	}
	r.events.Record(events.Event{
		Rule: verdict.Rule, About: about, Warning: true, Reason: reason, Action: string(request.Operation),
		Note: fmt.Sprintf("%s %s of %s by %s: %s", outcome, request.Operation, request.Object(), request.User.Name, verdict.Message),
	})
}

// recordConfiguration logs that a configuration was refused. The requester is
// shown what is wrong with it.
func (r recorder) recordConfiguration(request decide.Request, verdict decide.Verdict) {
	r.metrics.configs.WithLabelValues(string(verdict.Outcome()), string(verdict.Reason)).Inc()
	if verdict.Allowed {
		return
	}
	r.log.Info("refused a configuration that is not valid", zap.String("user", request.User.Name), zap.Strings("groups", request.User.Groups),
		zap.String("object", request.Object()), zap.String("reason", string(verdict.Reason)), zap.Bool("dryRun", request.DryRun))
}

// about is the object that request is about; the subject of the rule for a
// namespace or where no such object is known. It is nil without any of them.
func (r recorder) about(request decide.Request, ruleName string) *corev1.ObjectReference {
	if ref, known := request.Ref(); known && request.Old != nil {
		return &corev1.ObjectReference{
			APIVersion: "v1", Kind: string(ref.Kind), Namespace: ref.Namespace, Name: ref.Name, UID: request.Old.UID,
		}
	}
	rule, found := r.rules.Load().Named(ruleName)
	if !found {
		return nil
	}
	return spec.SubjectOf(*rule, r.source)
}
