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

// recorder reports verdicts: a metric for each review, a log line for each
// violation, and an Event for each denied or audited request. The API server
// shows a warning to the requester, so warnings get no Event. The recorder
// skips requests of the prover, which reports its own results. It never blocks.
type recorder struct {
	prober string
	rules  *rules.Live[spec.Rule]
	source func(object.Ref) (*object.Full, bool)
	events interface{ Record(events.Event) }
	// observer is called for each violation, if it is set.
	observer Observer
	metrics  *metrics
	log      *zap.Logger
}

// Observer receives each violation, to display it. Violated must not block.
type Observer interface{ Violated(violation Violation) }

// Violation is a request that a rule does not allow. It contains names but no
// values of objects.
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

// recordConfiguration counts the review of Headwater's configuration, and logs
// a refusal. The requester sees the problems in the response.
func (r recorder) recordConfiguration(request decide.Request, verdict decide.Verdict) {
	r.metrics.configs.WithLabelValues(string(verdict.Outcome()), string(verdict.Reason)).Inc()
	if verdict.Allowed {
		return
	}
	r.log.Info("denied an invalid configuration", zap.String("user", request.User.Name), zap.Strings("groups", request.User.Groups),
		zap.String("object", request.Object()), zap.String("reason", string(verdict.Reason)), zap.Bool("dryRun", request.DryRun))
}

// about returns the object of the Event: the object of the request. For a
// namespace or an unknown object it is the subject of the rule. It is nil if
// neither is known.
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
