package register

import (
	"context"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/manifests"
	"github.com/headwater-k8s/headwater/protect/prove"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// reconcileWebhooks writes the webhook configuration, or deletes it once policies have
// taken over. It leaves that of an earlier leader alone until then: nobody may serve it.
func (r *Registration) reconcileWebhooks(ctx context.Context, engine, inForce spec.Engine) (requeueAfter time.Duration, err error) {
	set := r.Rules.Load()
	holds, missing := r.policiesHold()
	switch {
	case len(set.All()) == 0:
	case inForce != spec.EnginePolicy:
		requeueAfter, err = r.registerWebhooks(ctx, set, engine)
		return loop.Sooner(requeueAfter, missing), err
	case !holds || !r.policiesCurrent:
		return missing, nil // or the next proof wakes the loop
	}
	r.setRegistered(false)
	r.closedSince = time.Time{}
	requeueAfter, err = r.webhooks.reconcile(ctx, &r.running, nil)
	if err == nil && !r.webhookGone {
		r.webhookGone = true
		r.Wake.Notify() // nothing is left for SelfPolicy to guard
	}
	return requeueAfter, err
}

// registerWebhooks writes the webhook configuration for set, which has rules.
func (r *Registration) registerWebhooks(ctx context.Context, set *rules.Set[spec.Rule], engine spec.Engine) (requeueAfter time.Duration, err error) {
	r.webhookGone = false
	bundle := r.Bundle()
	if err := r.webhooks.watch(ctx, &r.running); err != nil {
		return 0, err
	}
	r.recallWebhookVerified()
	proof := r.Proof()
	if bundle == nil || !proof.Known && engine == spec.EngineBoth || len(r.webhooks.applied) == 0 && !r.Answering() {
		return readyInterval, nil
	}
	mode := r.failureMode(engine, proof)
	endpoint := r.Endpoint(bundle)
	desired := manifests.Configuration(set, r.World().Headwater, mode, endpoint, bundle)
	if r.Own.Check != nil {
		desired.Webhooks = append(desired.Webhooks, manifests.ConfigurationWebhook(r.Own, endpoint, bundle))
	}
	desired.Webhooks = append(desired.Webhooks, manifests.ReachWebhook(r.Namespace, endpoint, bundle))
	requeueAfter, err = r.webhooks.reconcile(ctx, &r.running, []*admissionregistrationv1.ValidatingWebhookConfiguration{desired})
	r.setRegistered(len(r.webhooks.applied) > 0)
	r.closedSince = r.follow(r.closedSince, err == nil && mode == manifests.FailClosed)
	if holds, missing := r.webhookHolds(); !holds {
		requeueAfter = loop.Sooner(requeueAfter, missing)
	}
	return requeueAfter, err
}

// failureMode returns the failure mode for the webhook. It does not rely on
// policies that could not be written, even if one denied the last attempt: the
// others may be missing. Nor does a webhook that fails closed fail open before every API
// server has heard of the policies.
func (r *Registration) failureMode(engine spec.Engine, proof prove.Proof) manifests.FailureMode {
	r.webhookVerified = r.webhookVerified || proof.By == spec.EngineWebhook || proof.Webhook == prove.Denies
	heard, _ := r.settled(r.policiesSince)
	switch {
	case engine != spec.EngineWebhook && proof.By == spec.EnginePolicy && r.policiesCurrent && (heard || !r.isClosed()):
		return manifests.FailOpen
	case r.webhookVerified:
		return manifests.FailClosed
	default:
		return manifests.Probe
	}
}

// recallWebhookVerified sets webhookVerified from the live configuration,
// before it is overwritten: an earlier leader set the failure policy Fail only
// after verification.
func (r *Registration) recallWebhookVerified() {
	if r.webhookVerified || len(r.webhooks.applied) > 0 {
		return
	}
	r.webhookVerified = r.isClosed()
}

// isClosed reports whether the live configuration fails closed.
func (r *Registration) isClosed() bool {
	live, found := r.webhooks.view.Get("", spec.ConfigurationName)
	return found && slices.ContainsFunc(live.Webhooks, func(webhook admissionregistrationv1.ValidatingWebhook) bool {
		return webhook.FailurePolicy != nil && *webhook.FailurePolicy == admissionregistrationv1.Fail
	})
}
