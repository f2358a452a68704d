package register

import (
	"context"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/manifests"
	"github.com/headwater-k8s/headwater/protect/prove"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// helpFor is how long policies help a webhook that denies, but not all that the rules
// forbid, as while a replica has older rules.
const helpFor = 10 * time.Minute

// untilHandOver returns the engine to enforce the rules now. It is Both while the
// configured one has not taken over from the other: a guard goes only when its successor
// was seen to deny, and every API server must have heard of it since. It is also Both
// while a webhook that is registered lets pass what the rules forbid.
//
// requeueAfter is when the engine takes over, if only time is missing.
func (r *Registration) untilHandOver(ctx context.Context, engine spec.Engine) (inForce spec.Engine, requeueAfter time.Duration, err error) {
	switch {
	case !spec.HasRules(r.Rules) || !r.servesPolicies() || engine == spec.EngineBoth:
		return engine, 0, nil
	case engine == spec.EnginePolicy:
		inForce, requeueAfter = r.untilPoliciesHold()
		return inForce, requeueAfter, nil
	}
	if err := r.policies.watch(ctx, &r.running); err != nil {
		return "", 0, err
	}
	inForce, requeueAfter = r.untilWebhookHolds()
	return inForce, requeueAfter, nil
}

func (r *Registration) untilPoliciesHold() (inForce spec.Engine, requeueAfter time.Duration) {
	if holds, missing := r.policiesHold(); r.Registered() && !holds {
		return spec.EngineBoth, missing
	}
	return spec.EnginePolicy, 0
}

func (r *Registration) untilWebhookHolds() (inForce spec.Engine, requeueAfter time.Duration) {
	now, proof := r.Clock.Now(), r.Proof()
	holds, missing := r.webhookHolds()
	if proof.Allowed && holds {
		r.helpUntil = now.Add(helpFor)
	}
	switch {
	case now.Before(r.helpUntil):
		return spec.EngineBoth, r.helpUntil.Sub(now)
	case proof.Allowed && proof.Webhook == prove.Silent:
		return spec.EngineBoth, 0
	case r.policiesEnforce() && !holds:
		return spec.EngineBoth, missing
	default:
		return spec.EngineWebhook, 0
	}
}

// policiesEnforce reports whether a policy exists that enforces a rule. The cache may not
// have one yet that was written a moment ago.
func (r *Registration) policiesEnforce() bool {
	for name := range r.policies.applied {
		if manifests.EnforcesRules(name) {
			return true
		}
	}
	return slices.ContainsFunc(r.policies.view.List(), func(policy *admissionregistrationv1.ValidatingAdmissionPolicy) bool {
		return r.policies.isOurs(policy) && !r.policies.removed[policy.UID] && manifests.EnforcesRules(policy.Name)
	})
}

// webhookHolds reports whether every API server denies what the rules forbid without
// any policy: the webhook was seen to deny, and has been registered as FailClosed, as it
// still is, for prove.Settling. missing is the time until then, or 0 if more than time is missing.
func (r *Registration) webhookHolds() (holds bool, missing time.Duration) {
	if r.Proof().Webhook != prove.Denies || !r.isClosed() {
		return false, 0
	}
	return r.settled(r.closedSince)
}

// policiesHold reports whether every API server denies what the rules forbid without the
// webhook: all policies are written, and one was seen to deny for prove.Settling. If no
// rule enforces, none need to deny.
func (r *Registration) policiesHold() (holds bool, missing time.Duration) {
	if !spec.Enforces(decide.MarksMode(r.Rules.Load())) {
		return true, 0
	}
	return r.settled(r.policiesSince)
}

func (r *Registration) settled(since time.Time) (settled bool, missing time.Duration) {
	if since.IsZero() {
		return false, 0
	}
	missing = max(0, prove.Settling-r.Clock.Since(since))
	return missing == 0, missing
}

// follow returns since when something is so. since is what it returned before.
func (r *Registration) follow(since time.Time, isSo bool) time.Time {
	switch {
	case !isSo:
		return time.Time{}
	case since.IsZero():
		return r.Clock.Now()
	default:
		return since
	}
}
