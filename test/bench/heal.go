package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	healBudget = 50 * time.Millisecond
	tampered   = "tampered"
)

// heals measures from the API server's answer to the deletion or edit of a
// clone until the clone is back. The floor is the bench doing the same to a
// Secret of its own, by way of a watch too.
func (a *arena) heals(ctx context.Context) error {
	clones, err := a.secrets(ctx, shared)
	if err != nil {
		return err
	}
	defer clones.stop()
	own, err := a.secrets(ctx, bare)
	if err != nil {
		return err
	}
	defer own.stop()
	err = a.latency(ctx, "clone deleted to restored", healBudget,
		a.healing(a.deletes(shared), clones.restored(watch.Added)),
		a.healing(a.deletes(bare), own.mended(watch.Deleted, a.recreates, watch.Added)))
	if err != nil {
		return err
	}
	return a.latency(ctx, "clone edited to restored", healBudget,
		a.healing(a.edits(shared), clones.restored(watch.Modified)),
		a.healing(a.edits(bare), own.mended(watch.Modified, a.rewrites, watch.Modified)))
}

// step does something in one namespace.
type step func(ctx context.Context, namespace string) error

// healing does damage in the next namespace at each call, and times its repair.
func (a *arena) healing(damage, repair step) timer {
	next := -1
	return func(ctx context.Context) (time.Duration, error) {
		next++
		namespace := target(next % a.clones)
		if err := damage(ctx, namespace); err != nil {
			return 0, fmt.Errorf("damage: %w", err)
		}
		began := time.Now()
		err := repair(ctx, namespace)
		return time.Since(began), err
	}
}

func (a *arena) deletes(name string) step {
	return func(ctx context.Context, namespace string) error {
		return a.admin.CoreV1().Secrets(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	}
}

func (a *arena) edits(name string) step {
	patch := []byte(`{"stringData":{"version":"` + tampered + `"}}`)
	return func(ctx context.Context, namespace string) error {
		_, err := a.admin.CoreV1().Secrets(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
}

func (a *arena) recreates(ctx context.Context, namespace string) error {
	return create(ctx, a.peer, secret(namespace, bare, "0"))
}

func (a *arena) rewrites(ctx context.Context, namespace string) error {
	return update(ctx, a.peer, secret(namespace, bare, "0"))
}

// restored waits until somebody else has mended the damage.
func (s *stream) restored(by watch.EventType) step {
	return func(ctx context.Context, namespace string) error {
		mended := happens(by, namespace)
		return s.until(ctx, func(event watch.Event) bool { return mended(event) && !isTampered(event) })
	}
}

// mended mends the damage once it is seen, and waits until that is seen.
func (s *stream) mended(damage watch.EventType, repair step, by watch.EventType) step {
	return func(ctx context.Context, namespace string) error {
		if err := s.until(ctx, happens(damage, namespace)); err != nil {
			return err
		}
		if err := repair(ctx, namespace); err != nil {
			return err
		}
		return s.restored(by)(ctx, namespace)
	}
}

func isTampered(event watch.Event) bool {
	secret, ok := event.Object.(*corev1.Secret)
	return ok && string(secret.Data["version"]) == tampered
}
