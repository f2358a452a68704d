package measure

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	tampered = "tampered"
	// Tampering is a merge patch that damages a Secret.
	Tampering = `{"stringData":{"version":"` + tampered + `"}}`
)

// Step does something in one namespace.
type Step func(ctx context.Context, namespace string) error

// Restored waits until somebody else has repaired the damage.
func (s *Stream) Restored(by watch.EventType) Step {
	return func(ctx context.Context, namespace string) error {
		repaired := Happens(by, namespace)
		return s.Until(ctx, func(event watch.Event) bool { return repaired(event) && !IsTampered(event) })
	}
}

// Repaired repairs the damage once it is seen, and waits until that is seen.
func (s *Stream) Repaired(damage watch.EventType, repair Step, by watch.EventType) Step {
	return func(ctx context.Context, namespace string) error {
		if err := s.Until(ctx, Happens(damage, namespace)); err != nil {
			return err
		}
		if err := repair(ctx, namespace); err != nil {
			return err
		}
		return s.Restored(by)(ctx, namespace)
	}
}

// IsTampered says yes to a Secret that Tampering has damaged.
func IsTampered(event watch.Event) bool {
	secret, ok := event.Object.(*corev1.Secret)
	return ok && string(secret.Data["version"]) == tampered
}
