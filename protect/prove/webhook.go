package prove

import (
	"context"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// Answer is what is known about the webhook.
type Answer string

// The answers.
const (
	// Unknown: no webhook is registered, or the result is not certain.
	Unknown Answer = ""
	// Denies: the webhook denied the attempt.
	Denies Answer = "Denies"
	// Silent: the API server allowed the attempt.
	Silent Answer = "Silent"
)

// verifyWebhook tries whether the API server reaches the webhook, of which before is known,
// and returns when to try again at the latest. A denial counts at once, anything else after
// Settling.
func (p *Prover) verifyWebhook(ctx context.Context, before Answer) (answer Answer, requeueAfter time.Duration) {
	const subject = "webhook"
	if !p.Registered() {
		delete(p.doubtSince, subject)
		return Unknown, proofInterval
	}
	answer = before
	attempt := p.tryWebhook(ctx)
	denied := attempt.by == spec.EngineWebhook
	doubtful := p.doubtfulFor(subject, denied)
	switch {
	case denied:
		answer = Denies
	case doubtful < Settling:
	case attempt != finding{}:
		answer = Unknown
	default:
		answer = Silent
	}
	p.reportSilence(answer == Silent, doubtful)
	if denied || doubtful >= longDoubt {
		return answer, proofInterval
	}
	return answer, doubtInterval
}

// tryWebhook tries to create the object that only the webhook denies.
func (p *Prover) tryWebhook(ctx context.Context) finding {
	meta := object.NewMeta(object.Ref{Kind: object.ConfigMap, Namespace: p.Namespace, Name: spec.ReachName})
	_, err := p.Prober.CoreV1().ConfigMaps(p.Namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: meta}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return findingOf(err)
}

// reportSilence records an Event once the webhook has been silent for longDoubt. Earlier,
// an upgrade may be under way: older replicas do not know the attempt.
func (p *Prover) reportSilence(silent bool, since time.Duration) {
	if !silent {
		p.silent = false
	}
	if !silent || p.silent || since < longDoubt {
		return
	}
	p.silent = true
	note := "Headwater's webhook did not deny what only it denies: the API server does not reach it, or another version of Headwater answers; " +
		"check Service " + spec.ServiceName + ", its endpoints and NetworkPolicies, or --webhook-url"
	p.Log.Warn(note)
	p.Events.Record(events.Event{
		About: &corev1.ObjectReference{
			APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration", Name: spec.ConfigurationName,
		},
		Warning: true, Reason: "WebhookSilent", Action: "Prove", Note: note, Persisting: true,
	})
}
