package protect

import (
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/internal/text"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// recorder reports verdicts: a metric for each review, a log line for each
// violation, and an Event for each denied or audited request. The API server
// shows a warning to the requester, so warnings get no Event. The recorder
// skips requests of the prover, which reports its own results. It never blocks.
//
// Others than the API server may send reviews. So it reports to people only what can
// be true: a change of an object that is cached with the UID of the review's old object.
// A creation has no old object. Its requester gets the denial, the API server's audit
// log has it, and the metric counts it as unconfirmed.
type recorder struct {
	prober string
	// isKnown reports whether Headwater's caches have the old object of the request.
	isKnown func(decide.Request) bool
	rules   *rules.Live[spec.Rule]
	source  func(object.Ref) (*object.Full, bool)
	events  interface{ RecordDenial(events.Event) }
	// observer is called for each violation, if it is set.
	metrics *metrics
	log     *zap.Logger
}

// outcomeUnconfirmed is the outcome, in metrics, of a violation by a change of an object
// that Headwater does not know.
const outcomeUnconfirmed decide.Outcome = "unconfirmed"

// maxName limits the names that reports show of a user, in bytes, maxGroups the groups.
const maxName, maxGroups = 256, 20

// knownObjects are the objects that Headwater caches.
type knownObjects struct{ *informers.Caches }

// isKnown reports whether the old object of the request is cached, with its UID.
func (o knownObjects) isKnown(request decide.Request) bool {
	if request.Old == nil || request.Old.UID == "" {
		return false
	}
	if request.Kind == spec.KindNamespace {
		namespace, found := o.Namespaces.Get("", request.Old.Name)
		return found && namespace.UID == request.Old.UID
	}
	ref, known := request.Ref()
	if !known {
		return false
	}
	if source, found := o.Sources.Get(ref); found {
		return source.UID == request.Old.UID
	}
	clone, found := o.Clones[ref.Kind].Get(ref.Namespace, ref.Name)
	return found && clone.UID == request.Old.UID
}

func (r recorder) record(request decide.Request, verdict decide.Verdict, took time.Duration) {
	if request.Scope.About == decide.AboutReach || request.User.Name == r.prober && request.User.UID == "" { // impersonated, as only the prover does
		return
	}
	request.User = brief(request.User)
	if request.Scope.About == decide.AboutConfiguration {
		r.recordConfiguration(request, verdict)
		return
	}
	if verdict.Message != "" && !r.isKnown(request) {
		r.metrics.reviewed(request, verdict, outcomeUnconfirmed, took)
		return
	}
	r.metrics.reviewed(request, verdict, verdict.Outcome(), took)
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
	r.recordEvent(request, verdict)
}

// brief returns user as reports show it. Who may impersonate, or knows the path of the
// webhook, chooses names.
func brief(user decide.User) decide.User {
	brief := func(name string) string {
		return text.Truncate(strings.Join(strings.Fields(text.Printable(name)), " "), maxName)
	}
	user.Name = brief(user.Name)
	var groups []string
	for _, group := range user.Groups[:min(len(user.Groups), maxGroups)] {
		groups = append(groups, brief(group))
	}
	user.Groups = groups
	return user
}

// recordEvent records the Event of a request that violates a rule. A dry run has no side
// effects.
func (r recorder) recordEvent(request decide.Request, verdict decide.Verdict) {
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
	r.events.RecordDenial(events.Event{
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
// namespace it is the subject of the rule. It is nil if neither is known.
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
